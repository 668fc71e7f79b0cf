"""What a center answers: one function per question, no Flower.

A variable that the center cannot answer about gets a refusal; the others are answered. A refusal tells which rule
applies and which group it concerns, never how large any group is.
"""

import hmac
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from fed_mwu.binning import bin_sorted, check_sizes, sorted_groups
from fed_mwu.errors import BelowK, Decline, NotPrivate, NoValues, OutsideEnds
from fed_mwu.exchange import (
    WITHHELD,
    Counts,
    Description,
    Question,
    Refusal,
    StatisticAnswer,
    TableAnswer,
    TableQuestion,
)
from fed_mwu.joining import Joined, join_sorted
from fed_mwu.ranks import CenterStatistic, center_statistic
from fed_mwu.table import Table

from .source import Source

__all__ = ["Column", "Refused", "column_key", "describe", "for_each", "statistic", "table"]


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Column:
    """One variable of a center: sorted values of each group without NaN, and how many were missing."""

    groups: list[NDArray[np.float64]]
    missing: tuple[int, ...]

    @property
    def sizes(self) -> tuple[int, ...]:
        """Number of values of each group."""
        return tuple(int(values.size) for values in self.groups)


class Refused(Exception):
    """A variable is refused; caught in this file."""

    def __init__(self, code: str, group: int = -1) -> None:
        super().__init__(code)
        self.refusal = Refusal(code, group)


def describe(source: Source, question: Question) -> Description:
    """Tell the sizes of each variable's groups, if the center can take part with it."""
    counts, refusals = for_each(source, question, lambda _, column: Counts(column.sizes, column.missing))
    return Description(source.name, counts, refusals)


def statistic(source: Source, question: Question) -> StatisticAnswer:
    """Tell n, m, U and V of each variable, for the sum, weighted and Fisher tests."""
    if len(question.groups) != 2:
        raise Decline("bad-request", "a rank statistic needs two groups")

    def answer(_: str, column: Column) -> tuple[CenterStatistic, tuple[int, ...]]:
        for group, size in enumerate(column.sizes):
            if size == 0:
                raise Refused("empty-group", group)
        return center_statistic(*column.groups), column.missing

    answers, refusals = for_each(source, question, answer)
    statistics = {variable: found for variable, (found, _) in answers.items()}
    missing = {variable: lacking for variable, (_, lacking) in answers.items()}
    return StatisticAnswer(source.name, statistics, missing, refusals)


def table(source: Source, asked: TableQuestion) -> tuple[TableAnswer, Mapping[str, Table]]:
    """Join the table of each variable, or start it.

    Returns
    -------
    TableAnswer
    contributions : mapping of str to Table
        What the answer gives away of the center itself, for the check at the door; it stays here.
    """
    question = asked.question

    def answer(variable: str, column: Column) -> Joined:
        key = column_key(source, variable)
        options: dict[str, Any] = {"k": question.k, "ends": question.ends, "key": key, "max_bins": question.max_bins}
        before = asked.tables.get(variable)
        if before is None:
            first = bin_sorted(column.groups, **options)
            return Joined(first, first)
        return join_sorted(before, column.groups, **options)

    joined, refusals = for_each(source, question, answer)
    tables = {variable: found.table for variable, found in joined.items()}
    return TableAnswer(source.name, tables, refusals), {v: found.contribution for v, found in joined.items()}


def column_key(source: Source, variable: str) -> bytes:
    """Return the key that places a column's limits: the same whenever the column is asked about."""
    return hmac.digest(source.secret, b"column " + variable.encode(), "sha256")


def for_each(
    source: Source, question: Question, answer: Callable[[str, Column], T]
) -> tuple[dict[str, T], dict[str, Refusal]]:
    """Answer about each variable that the center may speak about; collect refusals for the others."""
    if question.k < source.minimum_k:
        raise Decline("k-too-small", "the center's own threshold is larger")
    answers: dict[str, T] = {}
    refusals: dict[str, Refusal] = {}
    for variable in question.variables:
        try:
            answers[variable] = answer(variable, _column(source, question, variable))
        except Refused as refused:
            refusals[variable] = refused.refusal
        except BelowK as below:
            refusals[variable] = Refusal("below-k", below.group)
        except NoValues:
            refusals[variable] = Refusal("no-values")
        except OutsideEnds:
            refusals[variable] = Refusal("outside-ends")
        except NotPrivate:
            refusals[variable] = Refusal("not-private")
        except Decline as declined:
            refusals[variable] = Refusal(declined.code)
    return answers, refusals


def _column(source: Source, question: Question, variable: str) -> Column:
    values = source.groups(variable, question.group, question.groups)
    groups = sorted_groups(values)
    check_sizes(groups, question.k)
    lacking = (all_.size - kept.size for all_, kept in zip(values, groups, strict=True))
    return Column(groups, tuple(n if n == 0 or n >= question.k else WITHHELD for n in lacking))
