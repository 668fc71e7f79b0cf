"""Tests that combine the centers' own rank statistics: one round to all centers (paper, section 6.2; METHODS 6).

A center gives away n, m, U and V of each variable: four numbers, once both groups hold at least k values.
"""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from flwr.app import ArrayRecord, RecordDict

from fed_mwu.errors import InvalidReply
from fed_mwu.exchange import WITHHELD
from fed_mwu.messages import decode_statistic_answer, encode_question
from fed_mwu.outcomes import FederatedResult, Participation
from fed_mwu.rank_tests import WEIGHTS, Weights, fisher_test, sum_test, weighted_test
from fed_mwu.ranks import CenterStatistic
from fed_mwu.results import RankTestResult
from fed_mwu.table import are_private

from .base import FederatedStrategy
from .requests import Request

__all__ = ["CenterTest", "FisherMWU", "SumMWU", "WeightedMWU"]


class CenterTest(FederatedStrategy):
    """Base of the one-shot tests: ask every center for its statistic, then combine them.

    Parameters are those of `FederatedStrategy`.
    """

    @abstractmethod
    def combine(self, statistics: Sequence[CenterStatistic]) -> RankTestResult:
        """Return the test from the statistics of the centers; it needs no federation."""

    def reuse(self, result: FederatedResult) -> FederatedResult:
        """Return this test from the statistics that another test has asked for: no round, no bytes."""
        tests = {
            variable: self.combine([s for c in result.centers if (s := c.variables[variable].statistic) is not None])
            for variable in result.tests
        }
        return replace(result, analysis=self.analysis, alternative=self.alternative, tests=tests, rounds=0, bytes=0)

    def _ask(self, server_round: int, arrays: ArrayRecord) -> list[Request]:
        if len(self.question.groups) != 2:
            raise ValueError(f"a rank test needs two groups, X and Y, in groups=(...), got {self.question.groups}")
        if server_round > 1:
            return []
        content = encode_question(self.question)
        return [Request(center, "statistic", content, self.question) for center in self.roster]

    def _receive(self, request: Request, content: RecordDict) -> None:
        answer = decode_statistic_answer(content, request.question)
        k = request.question.k
        for variable, found in answer.statistics.items():
            if not (found.n.is_integer() and found.m.is_integer() and min(found.n, found.m) >= k):
                raise InvalidReply("a group that it reports has fewer than k values, or no whole number of them")
            if not are_private([n for n in answer.missing[variable] if n != WITHHELD], k).all():
                raise InvalidReply("a count of missing values that it reports lies between 0 and k")
        self.roster.acknowledge(request.center, answer.center, answer.refusals, request.question)
        for variable, found in answer.statistics.items():
            request.center.parts[variable] = Participation(
                "took part", sizes=(int(found.n), int(found.m)), missing=answer.missing[variable], statistic=found
            )

    def _test(self, variable: str) -> RankTestResult:
        return self.combine([part.statistic for part in self.roster.present(variable) if part.statistic is not None])


class SumMWU(CenterTest):
    """``sum U_l / sqrt(sum V_l)``; see `fed_mwu.sum_test`. Parameters are those of `FederatedStrategy`."""

    analysis = "sum"

    def combine(self, statistics: Sequence[CenterStatistic]) -> RankTestResult:
        """See `fed_mwu.sum_test`."""
        return sum_test(statistics, alternative=self.alternative)


class WeightedMWU(CenterTest):
    """A weighted sum of the centers' statistics; see `fed_mwu.weighted_test`.

    Parameters
    ----------
    weights : {"optimal", "van-elteren"}
    **options
        Those of `FederatedStrategy`.
    """

    analysis = "weighted"

    def __init__(self, *, weights: Weights = "optimal", **options: Any) -> None:
        if weights not in WEIGHTS:
            raise ValueError(f"weights must be one of {WEIGHTS}, got {weights!r}")
        super().__init__(**options)
        self.weights: Weights = weights

    def combine(self, statistics: Sequence[CenterStatistic]) -> RankTestResult:
        """See `fed_mwu.weighted_test`."""
        return weighted_test(statistics, alternative=self.alternative, weights=self.weights)


class FisherMWU(CenterTest):
    """Fisher's combination of p-values; see `fed_mwu.fisher_test`. Parameters are those of `FederatedStrategy`."""

    analysis = "fisher"

    def combine(self, statistics: Sequence[CenterStatistic]) -> RankTestResult:
        """See `fed_mwu.fisher_test`."""
        return fisher_test(statistics, alternative=self.alternative)
