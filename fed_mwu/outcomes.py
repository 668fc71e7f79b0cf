"""What a whole run gives an analyst: the tests, what each center did, and what it cost.

No size below k, and no count of missing values below k, is ever in here: a center that declines tells which group is
too small, and neither its size nor that of the other group.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Literal, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fed_mwu.exchange import Question
from fed_mwu.quantiles import (
    QUANTILE_METHODS,
    QuantileEstimates,
    QuantileMethod,
    check_probabilities,
    estimate_groups,
)
from fed_mwu.ranks import Alternative, CenterStatistic
from fed_mwu.report import as_html, as_text
from fed_mwu.results import ConfidenceInterval, RankTestResult
from fed_mwu.table import Table

__all__ = ["CenterOutcome", "FederatedResult", "Participation", "QuantilesResult", "Status", "TableResult"]

T = TypeVar("T")
Status = Literal["took part", "declined", "excluded", "failed", "timed out", "not asked"]


@dataclass(frozen=True, slots=True)
class Participation:
    """What a center did for one variable.

    Parameters
    ----------
    status : {"took part", "declined", "excluded", "failed", "timed out", "not asked"}
        "excluded": the server did not accept what the center sent.
    reason : str
        Why, unless it took part.
    sizes : tuple of int, or None
        Values of each group, if the center took part.
    missing : tuple of int, or None
        Missing values of each group; -1 where there are some, but fewer than k.
    statistic : CenterStatistic, or None
        The center's own rank statistic, if it was asked for.
    """

    status: Status
    reason: str = ""
    sizes: tuple[int, ...] | None = None
    missing: tuple[int, ...] | None = None
    statistic: CenterStatistic | None = None


@dataclass(frozen=True, slots=True)
class CenterOutcome:
    """What a center did, by variable."""

    name: str
    variables: Mapping[str, Participation]

    @property
    def status(self) -> Status:
        """What the center did: "took part" if it is in the result of any variable, else as for the first one."""
        statuses = [part.status for part in self.variables.values()]
        return "took part" if "took part" in statuses else statuses[0]

    @property
    def reason(self) -> str:
        """Why the center took no part with some variables; each reason once."""
        return "; ".join(dict.fromkeys(part.reason for part in self.variables.values() if part.reason))


@dataclass(frozen=True, slots=True, kw_only=True)
class FederatedResult:
    """Result of a federated analysis.

    Parameters
    ----------
    analysis : str
        Name of the analysis: "table", "sum", "weighted" or "fisher".
    question : Question
        What the centers were asked.
    alternative : {"two-sided", "greater", "less"}
    tests : mapping of str to RankTestResult
        By variable.
    failures : mapping of str to str
        Variables without a result, and why.
    centers : tuple of CenterOutcome
    rounds : int
        Rounds of messages.
    bytes : int
        Size of all messages in both directions.
    """

    analysis: str
    question: Question
    alternative: Alternative
    tests: Mapping[str, RankTestResult]
    failures: Mapping[str, str]
    centers: tuple[CenterOutcome, ...]
    rounds: int
    bytes: int

    @property
    def test(self) -> RankTestResult:
        """The test of the only variable.

        Raises
        ------
        ValueError
            If there are several variables, or there is no result.
        """
        return self._of_the_only_variable(self.tests, "tests", "it takes two groups")

    def _of_the_only_variable(self, found: Mapping[str, T], name: str, otherwise: str = "") -> T:
        if len(self.question.variables) != 1:
            raise ValueError(f"there are {len(self.question.variables)} variables: use .{name}[name]")
        variable = self.question.variables[0]
        if variable not in found:
            raise ValueError(f"there are no {name}: {self.failures.get(variable, otherwise)}")
        return found[variable]

    @property
    def statistic(self) -> float:
        """The statistic of the only variable's test."""
        return self.test.statistic

    @property
    def pvalue(self) -> float:
        """The p-value of the only variable's test."""
        return self.test.pvalue

    @property
    def log_pvalue(self) -> float:
        """The natural logarithm of that p-value."""
        return self.test.log_pvalue

    @property
    def superiority(self) -> float:
        """The superiority of the only variable's test."""
        return self.test.superiority

    def confidence_interval(self, level: float = 0.95) -> ConfidenceInterval:
        """Compute the interval of the only variable's superiority; see `RankTestResult.confidence_interval`."""
        return self.test.confidence_interval(level)

    def estimates_of(self, variable: str) -> tuple[QuantileEstimates, ...]:  # noqa: ARG002
        """Return the quantiles of a variable; a test has none."""
        return ()

    def notes_of(self, variable: str) -> tuple[str, ...]:
        """Return what a reader must know to read the results of a variable rightly."""
        return self.tests[variable].notes if variable in self.tests else ()

    def summary(self) -> str:
        """Return the centers and the tests as text."""
        return as_text([self])

    def __str__(self) -> str:
        return self.summary()

    def _repr_html_(self) -> str:
        return as_html([self])


@dataclass(frozen=True, slots=True, kw_only=True)
class QuantilesResult(FederatedResult):
    """Result of a quantile analysis.

    Parameters
    ----------
    quantiles : mapping of str to tuple of QuantileEstimates
        By variable: one for each group that has values, and each estimator.
    notes : mapping of str to tuple of str
        By variable: estimators without an answer, and why.
    """

    quantiles: Mapping[str, tuple[QuantileEstimates, ...]] = field(repr=False)
    notes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def estimates_of(self, variable: str) -> tuple[QuantileEstimates, ...]:
        """Return the quantiles of a variable."""
        return self.quantiles.get(variable, ())

    def notes_of(self, variable: str) -> tuple[str, ...]:
        """Return which estimators have no answer, and why."""
        return self.notes.get(variable, ())

    @property
    def estimates(self) -> NDArray[np.float64]:
        """The quantiles of the only variable's first group.

        Raises
        ------
        ValueError
            If there are several variables, or there is no result.
        """
        return self._of_the_only_variable(self.quantiles, "quantiles")[0].estimates


@dataclass(frozen=True, slots=True, kw_only=True)
class TableResult(FederatedResult):
    """Result of a sequential table.

    Parameters
    ----------
    tables : mapping of str to Table
        By variable.
    """

    tables: Mapping[str, Table] = field(repr=False)

    def quantiles(
        self, probabilities: ArrayLike, methods: Sequence[QuantileMethod] = ("yeo-johnson",)
    ) -> "QuantilesResult":
        """Estimate quantiles of each group from the tables; no further round is needed.

        Parameters
        ----------
        probabilities : array_like of shape (P,)
            Between 0 and 1.
        methods : sequence of str
            See `fed_mwu.table_quantiles`. What a method cannot answer is told in the result's notes.

        Returns
        -------
        QuantilesResult

        Raises
        ------
        ValueError
            If a probability is not between 0 and 1 or a method is unknown.
        """
        p = check_probabilities(probabilities)
        if unknown := [method for method in methods if method not in QUANTILE_METHODS]:
            raise ValueError(f"methods must be some of {QUANTILE_METHODS}, got {unknown!r}")
        found: dict[str, tuple[QuantileEstimates, ...]] = {}
        notes: dict[str, tuple[str, ...]] = {}
        for variable, table in self.tables.items():
            found[variable], notes[variable] = estimate_groups(table, p, methods, self.question.groups)
        common = {f.name: getattr(self, f.name) for f in fields(FederatedResult)}
        return QuantilesResult(**{**common, "tests": {}}, quantiles=found, notes=notes)

    @property
    def table(self) -> Table:
        """The table of the only variable.

        Raises
        ------
        ValueError
            If there are several variables, or there is no table.
        """
        return self._of_the_only_variable(self.tables, "tables")
