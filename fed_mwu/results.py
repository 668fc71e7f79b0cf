"""What an analyst receives from one test: a frozen result that computes effect size and interval on demand.

The interval is Newcombe's score-type interval: its variance at 1/2 equals the variance of the test, so the interval
leaves out 1/2 exactly when the two-sided test rejects. Not promised: coverage for very few, heavily tied values.

References
----------
Newcombe (2006), "Confidence intervals for an effect size measure based on the Mann-Whitney statistic. Part 2",
Statistics in Medicine 25, 559-573, method 5. Hanley and McNeil (1982), Radiology 143, 29-36.
"""

import html
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from scipy.optimize import brentq
from scipy.special import ndtri

from fed_mwu.ranks import Alternative, CenterStatistic

__all__ = ["ConfidenceInterval", "RankTestResult"]


class ConfidenceInterval(NamedTuple):
    """A two-sided confidence interval."""

    low: float
    high: float


@dataclass(frozen=True, slots=True)
class RankTestResult:
    """Result of a federated Mann-Whitney test; unpacks to ``(statistic, pvalue)``.

    Parameters
    ----------
    statistic : float
        A standard normal under the null hypothesis; for Fisher's method a chi-square.
    log_pvalue : float
        Natural logarithm: p-values below 1e-308 stay ordered.
    alternative : {"two-sided", "greater", "less"}
        "greater": Y tends to be larger.
    method : str
        Name of the test.
    strata : tuple of CenterStatistic
        The sufficient statistics: one per center that was used, or one of a table or of pooled data.
    weights : tuple of float
        Weight of each stratum's U in the effect size.
    notes : tuple of str
        What a reader must know to read the result rightly.
    """

    statistic: float
    log_pvalue: float
    alternative: Alternative
    method: str
    strata: tuple[CenterStatistic, ...]
    weights: tuple[float, ...]
    notes: tuple[str, ...] = ()

    def __iter__(self) -> Iterator[float]:
        yield self.statistic
        yield self.pvalue

    @property
    def pvalue(self) -> float:
        """The p-value; 0.0 when it is below the smallest number (`log_pvalue` is still right)."""
        return math.exp(self.log_pvalue)

    @property
    def superiority(self) -> float:
        """Estimate of ``P(Y > X) + P(Y = X) / 2`` within a center: ``(sum w U / sum w n m + 1) / 2``."""
        shares = self._shares()
        return 0.5 + 0.5 * math.fsum(a * c.u / (c.n * c.m) for a, c in zip(shares, self.strata, strict=True))

    def confidence_interval(self, level: float = 0.95) -> ConfidenceInterval:
        """Compute a two-sided confidence interval of the superiority.

        Parameters
        ----------
        level : float
            Between 0 and 1, both excluded.

        Returns
        -------
        ConfidenceInterval
            Within [0, 1]; (0, 1) when all values are tied, for they carry no information.

        Raises
        ------
        ValueError
            If `level` is not between 0 and 1.
        """
        if not 0.0 < level < 1.0:
            raise ValueError(f"level must be between 0 and 1, got {level!r}")
        if not any(c.variance for c in self.strata):
            return ConfidenceInterval(0.0, 1.0)
        z = float(ndtri(0.5 + level / 2.0))
        estimate = self.superiority

        def outside(theta: float) -> float:
            return abs(theta - estimate) - z * math.sqrt(self._variance(theta))

        # At 0 and 1 the variance is 0; a hair inside the interval holds every estimate, which gives both roots a
        # bracket.
        inside = min(max(estimate, 1e-300), 1.0 - 2.0**-53)
        low = brentq(outside, 0.0, inside, xtol=1e-15) if estimate > 0.0 else 0.0
        high = brentq(outside, inside, 1.0, xtol=1e-15) if estimate < 1.0 else 1.0
        return ConfidenceInterval(float(low), float(high))

    def _shares(self) -> list[float]:
        pairs = [w * c.n * c.m for w, c in zip(self.weights, self.strata, strict=True)]
        total = math.fsum(pairs)
        # Without any weight (all strata tied) each estimate is 1/2, whatever its share.
        return [p / total for p in pairs] if total else [1.0 / len(pairs)] * len(pairs)

    def _variance(self, theta: float) -> float:
        """Variance of the estimate if the superiority is `theta` in each stratum (Newcombe's method 5)."""
        return math.fsum(a * a * _stratum_variance(c, theta) for a, c in zip(self._shares(), self.strata, strict=True))

    def __str__(self) -> str:
        low, high = self.confidence_interval()
        return (
            f"{self.method}: statistic {self.statistic:.4f}, "
            f"p-value {format_pvalue(self.log_pvalue)} ({self.alternative}), "
            f"superiority {self.superiority:.4f} (95% interval {low:.4f} to {high:.4f})"
        )

    def _repr_html_(self) -> str:
        return f"<p>{html.escape(str(self))}</p>"


def _stratum_variance(c: CenterStatistic, theta: float) -> float:
    """Hanley and McNeil's variance with Newcombe's mean size, times what ties leave of it under the null hypothesis."""
    mean_size = (c.n + c.m) / 2.0 - 1.0
    untied = theta * (1.0 - theta) * (1.0 + mean_size * ((1.0 - theta) / (2.0 - theta) + theta / (1.0 + theta)))
    ties = 3.0 * c.variance / (c.n * c.m * (c.n + c.m + 1.0))
    return untied * ties / (c.n * c.m)


def format_pvalue(log_pvalue: float) -> str:
    """Write a p-value with four digits, from its logarithm: 1e-400 is written as such."""
    if math.isnan(log_pvalue):
        return "nan"
    if log_pvalue > math.log(1e-4):
        return f"{math.exp(log_pvalue):.4f}"
    exponent = math.floor(log_pvalue / math.log(10.0))
    mantissa = math.exp(log_pvalue - exponent * math.log(10.0))
    digits = f"{mantissa:.3f}"
    return f"{digits}e{exponent:+03d}" if digits != "10.000" else f"1.000e{exponent + 1:+03d}"
