"""What the server and the centers say to each other, as plain dataclasses; `fed_mwu.messages` puts them on the wire.

One question names all variables, one answer speaks about all of them: the number of messages does not grow with the
number of variables. A refusal is a code out of `DECLINES`, never a text of the center's own, so that no data can hide
in it.
"""

import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from fed_mwu.binning import DEFAULT_MAX_BINS, check_settings
from fed_mwu.limits import Ends
from fed_mwu.ranks import CenterStatistic
from fed_mwu.table import Table

__all__ = [
    "DECLINES",
    "WITHHELD",
    "Counts",
    "Description",
    "Question",
    "Refusal",
    "StatisticAnswer",
    "TableAnswer",
    "TableQuestion",
    "explain",
]

WITHHELD = -1
"""Stands for a size or a count of missing values that is not told."""

MAX_VARIABLES = 100_000
MAX_NAME = 200

# The order is the wire's: append, never reorder. {group} is a label of the question, {k} its threshold.
DECLINES: Mapping[str, str] = MappingProxyType(
    {
        "below-k": 'group "{group}" has fewer than {k} values',
        "empty-group": 'group "{group}" has no values',
        "no-values": "no group has any value",
        "unknown-variable": "the center has no such variable",
        "not-numeric": "the variable holds text that is no number",
        "outside-ends": "values lie outside the ends asked for",
        "k-too-small": "the center asks for a larger k",
        "unknown-group": "the center has no such grouping column",
        "no-data": "the center's operator has named no data",
        "bad-request": "the center did not understand the request",
        "wrong-version": "the center speaks another version of the protocol",
        "not-private": "the answer would not have been private and was kept back",
        "internal-error": "the center failed; its own log says why",
        "not-finite": "the variable holds infinite values",
        "few-of-a-sign": "fewer than {k} values are negative, or not negative",
        "too-many-numbers": "more numbers are asked for than a group of this size may give away",
        "loss-not-allowed": "the center's operator has not allowed the quantile loss, which gives away single values",
    }
)


def _check_name(name: object, what: str) -> None:
    if not isinstance(name, str) or not 0 < len(name) <= MAX_NAME:
        raise ValueError(f"{what} must be text of 1 to {MAX_NAME} characters, got {name!r}")


def _names(given: Sequence[str], what: str) -> tuple[str, ...]:
    if isinstance(given, str):
        raise TypeError(f"{what} must be a sequence of names, got the single text {given!r}")
    names = tuple(given)
    if not names:
        raise ValueError(f"{what} must name at least one, got none")
    for name in names:
        _check_name(name, f"each of {what}")
    if len(set(names)) != len(names):
        raise ValueError(f"{what} must differ from each other, got {names!r}")
    return names


@dataclass(frozen=True, slots=True)
class Question:
    """What an analysis asks of every center.

    Parameters
    ----------
    variables : sequence of str
        Names of the columns to analyse.
    group : str
        Name of the column that holds the group labels.
    groups : sequence of str
        The labels, in the order X, Y for the tests.
    k : int
        Anonymity threshold, at least 1. A center may insist on a larger one and declines then.
    ends : Ends
        Ends of the tables.
    max_bins : int
        See `fed_mwu.bin_center`.

    Raises
    ------
    ValueError, TypeError
        If something is missing, doubled or out of range.
    """

    variables: tuple[str, ...]
    group: str
    groups: tuple[str, ...]
    k: int = 10
    ends: Ends = field(default_factory=Ends.open)
    max_bins: int = DEFAULT_MAX_BINS

    def __post_init__(self) -> None:
        object.__setattr__(self, "variables", _names(self.variables, "variables"))
        object.__setattr__(self, "groups", _names(self.groups, "groups"))
        if len(self.variables) > MAX_VARIABLES:
            raise ValueError(f"variables must be at most {MAX_VARIABLES}, got {len(self.variables)}")
        if self.group or len(self.groups) != 1:  # without a column all rows are one group
            _check_name(self.group, "group")
        check_settings(self.k, self.max_bins)
        object.__setattr__(self, "k", operator.index(self.k))
        if not isinstance(self.ends, Ends):
            raise TypeError(f"ends must be Ends.open(), Ends.buffer() or Ends.natural(low, high), got {self.ends!r}")

    def about(self, variables: Sequence[str]) -> "Question":
        """Return the same question about some of the variables."""
        return Question(tuple(variables), self.group, self.groups, self.k, self.ends, self.max_bins)


@dataclass(frozen=True, slots=True)
class TableQuestion:
    """A question that brings along, for each variable, the table so far; a variable without one starts it."""

    question: Question
    tables: Mapping[str, Table]


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a center does not answer about a variable: a code of `DECLINES`, and which group it is about, if any."""

    code: str
    group: int = -1

    def __post_init__(self) -> None:
        if self.code not in DECLINES:
            raise ValueError(f"code must be one of {tuple(DECLINES)}, got {self.code!r}")


def explain(refusal: Refusal, question: Question) -> str:
    """Put a refusal into words, made of the question's own labels and threshold only."""
    label = question.groups[refusal.group] if 0 <= refusal.group < len(question.groups) else "?"
    return DECLINES[refusal.code].format(group=label, k=question.k)


@dataclass(frozen=True, slots=True)
class Counts:
    """How many values of each group a center has for one variable, and how many it lacks (`WITHHELD` if not told)."""

    sizes: tuple[int, ...]
    missing: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Description:
    """Answer to ``describe``: sizes of the variables that the center can take part with, refusals for the others."""

    center: str
    counts: Mapping[str, Counts]
    refusals: Mapping[str, Refusal]


@dataclass(frozen=True, slots=True)
class TableAnswer:
    """Answer to ``table``: the joined tables, and refusals for the other variables."""

    center: str
    tables: Mapping[str, Table]
    refusals: Mapping[str, Refusal]


@dataclass(frozen=True, slots=True)
class StatisticAnswer:
    """Answer to ``statistic``: n, m, U and V of each variable, counts of missing values, refusals for the others."""

    center: str
    statistics: Mapping[str, CenterStatistic]
    missing: Mapping[str, tuple[int, ...]]
    refusals: Mapping[str, Refusal]
