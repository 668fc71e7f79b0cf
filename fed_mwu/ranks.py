"""The Mann-Whitney statistic of one center and its variance, exact at any size (paper, section 6.1; METHODS 6).

Direction: the statistic counts pairs with y above x, so "greater" means that Y tends to be larger. p-values are normal
approximations with tie correction; the exact distribution of small samples is not offered.

>>> center_statistic([1, 2, 3], [2, 4, 5]).u
6.0
"""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import log_ndtr

from fed_mwu.pairs import count_pairs, largest_magnitude
from fed_mwu.values import real_values

__all__ = ["ALTERNATIVES", "Alternative", "CenterStatistic", "center_statistic", "log_normal_pvalue"]

Alternative = Literal["two-sided", "greater", "less"]
ALTERNATIVES: tuple[Alternative, ...] = ("two-sided", "greater", "less")

_TOLERANCE = 1e-9


def log_normal_pvalue(z: float, alternative: Alternative) -> float:
    """Return the natural logarithm of the p-value of a standard normal `z`; it stays exact far below 1e-308.

    Raises
    ------
    ValueError
        If `alternative` is unknown.
    """
    if alternative not in ALTERNATIVES:
        raise ValueError(f"alternative must be one of {ALTERNATIVES}, got {alternative!r}")
    if alternative == "two-sided":
        # Rounding may lift twice the tail of z = 0 above 1; NaN stays NaN.
        return float(np.minimum(0.0, math.log(2.0) + log_ndtr(-abs(z))))
    return float(log_ndtr(-z if alternative == "greater" else z))


@dataclass(frozen=True, slots=True)
class CenterStatistic:
    """What a center releases for the sum, weighted and Fisher tests.

    Parameters
    ----------
    n, m : float
        Sizes of X and Y.
    u : float
        ``sum_ij sign(y_j - x_i)``: 0 on average under the null hypothesis.
    variance : float
        Variance of `u` under the null hypothesis, ties included; 0 when all values are tied.
    n_missing, m_missing : int
        NaN that were left out.

    Raises
    ------
    ValueError
        If the numbers contradict each other: ``|u| <= n m``, ``variance <= n m (N + 1) / 3`` and, as the correlation of
        ranks and groups is at most 1, ``u^2 <= (N - 1) variance``.
    """

    n: float
    m: float
    u: float
    variance: float
    n_missing: int = 0
    m_missing: int = 0

    def __post_init__(self) -> None:
        if not all(math.isfinite(v) for v in (self.n, self.m, self.u, self.variance)):
            raise ValueError("n, m, u and variance must be finite")
        if min(self.n, self.m, self.variance, self.n_missing, self.m_missing) < 0:
            raise ValueError("n, m, variance and counts of missing values must not be negative")
        pairs, total = self.n * self.m, self.n + self.m
        if abs(self.u) > pairs * (1.0 + _TOLERANCE):
            raise ValueError("|u| must be at most n * m")
        if self.variance > pairs * (total + 1.0) / 3.0 * (1.0 + _TOLERANCE):
            raise ValueError("variance must be at most n * m * (n + m + 1) / 3")
        if abs(self.u) > math.sqrt(max(total - 1.0, 0.0) * self.variance) * (1.0 + _TOLERANCE):
            raise ValueError("u^2 must be at most (n + m - 1) * variance")

    @property
    def z(self) -> float:
        """The statistic in standard deviations; 0 when all values are tied, NaN when a group is empty."""
        return self._standardized(self.u)

    @property
    def superiority(self) -> float:
        """Estimate of ``P(Y > X) + P(Y = X) / 2``; NaN when a group is empty."""
        pairs = self.n * self.m
        return (self.u / pairs + 1.0) / 2.0 if pairs else math.nan

    def log_pvalue(self, alternative: Alternative = "two-sided", *, continuity: bool = False) -> float:
        """Return the natural logarithm of the p-value.

        Parameters
        ----------
        alternative : {"two-sided", "greater", "less"}
            "greater": Y tends to be larger.
        continuity : bool
            Move `u` by 1 (the usual U by 1/2) towards no effect, as R does by default.

        Returns
        -------
        float
            0 (p = 1) when all values are tied, NaN when a group is empty.

        Raises
        ------
        ValueError
            If `alternative` is unknown.
        """
        log_pvalue = log_normal_pvalue(
            self._standardized(self._corrected(alternative) if continuity else self.u), alternative
        )
        return 0.0 if self.n * self.m and not self.variance else log_pvalue

    def _corrected(self, alternative: Alternative) -> float:
        if alternative == "two-sided":
            return math.copysign(max(abs(self.u) - 1.0, 0.0), self.u)
        return self.u - 1.0 if alternative == "greater" else self.u + 1.0

    def _standardized(self, u: float) -> float:
        if not self.n * self.m:
            return math.nan
        return u / math.sqrt(self.variance) if self.variance else 0.0


def center_statistic(x: ArrayLike, y: ArrayLike) -> CenterStatistic:
    """Compare each value of `y` with each value of `x`.

    Parameters
    ----------
    x, y : array_like of shape (n,) and (m,)
        The values of the groups X and Y. NaN is left out and counted; infinite values are ranked.

    Returns
    -------
    CenterStatistic
        ``u > 0`` when `y` tends to be larger. With an empty group `u` and `variance` are 0.

    Raises
    ------
    TypeError, ValueError
        If the data are no one-dimensional real numbers.
    """
    xs, n_missing, largest_x = _present(x, "x")
    ys, m_missing, largest_y = _present(y, "y")
    n, m = xs.size, ys.size
    if not n or not m:
        return CenterStatistic(float(n), float(m), 0.0, 0.0, n_missing, m_missing)
    counts = count_pairs(xs, ys, max(largest_x, largest_y))
    total = n + m
    # nm/3 [(N+1) - sum(t^3-t) / (N(N-1))] over a common denominator: one division of integers, rounded once.
    variance = n * m * (total**3 - counts.cubes) / (3 * total * (total - 1))
    return CenterStatistic(float(n), float(m), float(counts.u), variance, n_missing, m_missing)


def _present(values: ArrayLike, name: str) -> tuple[NDArray[np.float64] | NDArray[np.int64], int, float]:
    """Return the values without NaN, how many NaN there were, and the largest magnitude."""
    numbers = real_values(values, name)
    if not numbers.size:
        return numbers, 0, 0.0
    # NaN if any value is: cheaper than testing each value when none is missing, as is usual.
    largest = largest_magnitude(numbers)
    if not math.isnan(largest):
        return numbers, 0, largest
    kept = numbers[~np.isnan(numbers)]
    return kept, numbers.size - kept.size, largest_magnitude(kept) if kept.size else 0.0
