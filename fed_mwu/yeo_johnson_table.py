"""The Yeo-Johnson fit to tables: maximum grouped likelihood (paper, "YJ table"; METHODS 8).

The likelihood is ``sum_j f_j log[Phi((psi(c_j) - mu) / sigma) - Phi((psi(c_(j-1)) - mu) / sigma)]``, the end bins
open whatever the ends are. It is written in ``v = (psi(c) - psi(m)) / (psi'(m) s)`` with m a limit near the median
and s a distance of limits: the same curve whatever offset and unit the data have, without powers that overflow.
Newton's method finds the maximum in ``(lam, alpha, beta)``, ``Phi(alpha v + beta)`` being the distribution at a
limit; for a given lam the likelihood is concave.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

from fed_mwu.grouped_likelihood import SMALLEST_REACH, Likelihood, Scale
from fed_mwu.table import Table
from fed_mwu.yeo_johnson import yeo_johnson

__all__ = ["TableFit", "fit_table"]

Floats = NDArray[np.float64]

_LARGEST_EXPONENT = 100.0
_MOST_STEPS = 100
_STARTS = np.array([-6.0, -2.0, -0.7, 0.0, 0.7, 2.0, 6.0])


@dataclass(frozen=True, slots=True)
class TableFit:
    """Result of `fit_table`: ``Phi(alpha v(x; lam) + beta)`` in the units of this module.

    Parameters
    ----------
    parameters : ndarray of shape (3,)
        ``lam``, ``alpha`` and ``beta`` of the (mirrored) data.
    covariance : ndarray of shape (3, 3)
        Their inverse information.
    scale : Scale
    log_likelihood : float
        At the maximum.
    """

    parameters: Floats
    covariance: Floats
    scale: Scale
    log_likelihood: float

    @property
    def lam(self) -> float:
        """The exponent of the transform."""
        return 2.0 - float(self.parameters[0]) if self.scale.mirrored else float(self.parameters[0])

    @property
    def mu(self) -> float:
        """Mean of the transformed data."""
        lam, alpha, beta = self.parameters.tolist()
        mean: float = float(yeo_johnson(self.scale.reference, lam)) - beta / alpha * self._unit()
        return -mean if self.scale.mirrored else mean

    @property
    def sigma(self) -> float:
        """Standard deviation of the transformed data."""
        return self._unit() / float(self.parameters[1])

    def _unit(self) -> float:
        """Return what a unit of v is on the scale of psi."""
        exponent = (float(self.parameters[0]) - 1.0) * math.log1p(self.scale.reference)
        return float(self.scale.unit * math.exp(min(exponent, 700.0)))

    def quantiles(self, probabilities: ArrayLike) -> Floats:
        """Return the fitted distribution's quantiles, infinite where the transform ends before."""
        return self._at(ndtri(np.asarray(probabilities, dtype=np.float64)))

    def interval(self, probabilities: ArrayLike, level: float) -> tuple[Floats, Floats]:
        """Return confidence limits of the quantiles, by the delta method on the normal scale."""
        z = ndtri(np.asarray(probabilities, dtype=np.float64))
        lam, alpha, beta = self.parameters.tolist()
        v = (np.where(np.isfinite(z), -z if self.scale.mirrored else z, 0.0) - beta) / alpha
        at = self.scale.inverse(v, lam)
        by_lam = self.scale.values(np.where(np.isfinite(at), at, self.scale.reference), lam)[1]
        gradient = np.stack((alpha * by_lam, v, np.ones_like(v)))
        variance = np.einsum("ip,ij,jp->p", gradient, self.covariance, gradient)
        half = ndtri(0.5 + level / 2.0) * np.sqrt(np.maximum(variance, 0.0))
        return self._at(np.where(np.isfinite(z), z - half, z)), self._at(np.where(np.isfinite(z), z + half, z))

    @property
    def slope(self) -> float:
        """By how much the normal score grows with `scale_values`."""
        return float(self.parameters[1])

    def scale_values(self, x: Floats) -> Floats:
        """Return values on the transformed scale, in the units of this module: rising with x."""
        sign = -1.0 if self.scale.mirrored else 1.0
        return sign * self.scale.values(sign * x, float(self.parameters[0]))[0]

    def scale_inverse(self, v: Floats) -> Floats:
        """Return the values that `scale_values` takes there."""
        sign = -1.0 if self.scale.mirrored else 1.0
        return sign * self.scale.inverse(sign * v, float(self.parameters[0]))

    def _at(self, z: Floats) -> Floats:
        sign = -1.0 if self.scale.mirrored else 1.0
        return self.scale_inverse(sign * (sign * z - float(self.parameters[2])) / self.slope)


def fit_table(tables: Sequence[Table], group: int = 0) -> TableFit:
    """Fit one distribution to a group of one or several tables.

    Parameters
    ----------
    tables : sequence of Table
        Side by side: their likelihoods multiply.
    group : int
        Row of their counts.

    Returns
    -------
    TableFit

    Raises
    ------
    ValueError
        If fewer than three bins of the tables hold values: they do not tell a center from a spread.
    """
    limits, lower, upper, counts = _cells(tables, group)
    if counts.size < 3:
        raise ValueError(
            "a Yeo-Johnson fit needs at least three bins with values; ask for a smaller k or pool more data"
        )
    scale = _find_scale(tables, group)
    if scale.mirrored:
        n = limits.size
        limits, lower, upper = -limits, np.where(upper == n, -1, upper), np.where(lower == -1, n, lower)
    # Two limits fix two numbers: lambda is then 1. Empty bins between add limits and tell more.
    used = np.union1d(lower[lower >= 0], upper[upper < limits.size])
    cells = Likelihood(limits, lower, upper, counts, scale)
    free = np.array([used.size > 2 and cells.reach > SMALLEST_REACH, True, True])
    start = _start(tables, group, scale, cells, _STARTS if free[0] else np.zeros(1))
    at, value, information = _maximize(cells, start, free)
    parameters = np.array([cells.lam(float(at[0])), at[1], at[2]])
    covariance = np.zeros((3, 3))
    covariance[np.ix_(free, free)] = np.linalg.pinv(information[np.ix_(free, free)])
    covariance[0] /= cells.reach
    covariance[:, 0] /= cells.reach
    return TableFit(parameters, covariance, scale, value)


def _cells(tables: Sequence[Table], group: int) -> tuple[Floats, NDArray[np.intp], NDArray[np.intp], Floats]:
    """Return all interior limits, and for each bin with values the positions of its lower and upper one and its count.

    Position -1 stands for no lower limit, the number of limits for no upper one.
    """
    limits = np.concatenate([table.limits[1:-1] for table in tables])
    lower, upper, start = [], [], 0
    for table in tables:
        n = table.n_bins - 1
        inner = np.arange(start, start + n)
        lower.append(np.concatenate(([-1], inner)))
        upper.append(np.concatenate((inner, [limits.size])))
        start += n
    counts = np.concatenate([table.counts[group] for table in tables])
    used = counts > 0.0
    return limits, np.concatenate(lower)[used], np.concatenate(upper)[used], counts[used]


def _find_scale(tables: Sequence[Table], group: int) -> Scale:
    table = max(tables, key=lambda t: float(t.counts[group].sum()))
    limits, share = table.limits[1:-1], table.cdf(group)[1:-1]
    middle = float(limits[np.argmin(np.abs(share - 0.5))])
    low, high = limits[np.argmin(np.abs(share - 0.2))], limits[np.argmin(np.abs(share - 0.8))]
    unit = float(high - low) or float(limits[-1] - limits[0]) or 1.0 + abs(middle)
    return Scale(abs(middle), unit, middle < 0.0)


def _start(tables: Sequence[Table], group: int, scale: Scale, cells: Likelihood, tilts: Floats) -> Floats:
    """Return the straightest normal plot over a few lambda on the data's own scale."""
    z, limits = [], []
    for table in tables:
        share = table.cdf(group)[1:-1]
        inside = (share > 0.0) & (share < 1.0)
        z.append(ndtri(share[inside]))
        limits.append(table.limits[1:-1][inside])
    scores, places = np.concatenate(z), np.concatenate(limits)
    if scale.mirrored:
        scores, places = -scores, -places
    found: list[tuple[float, Floats]] = []
    for tilt in tilts:
        with np.errstate(all="ignore"):
            v = scale.values(places, cells.lam(float(tilt)))[0]
            spread = v - v.mean()
            covariance, variance = float(spread @ scores), float(spread @ spread)
        if np.isfinite([covariance, variance]).all() and variance > 0.0 and covariance > 0.0:
            alpha = covariance / variance
            start = np.array([float(tilt), alpha, float(scores.mean() - alpha * v.mean())])
            found.append((covariance**2 / variance, start))
    for _, start in sorted(found, key=lambda pair: -pair[0]):
        if np.isfinite(cells(start)[2]).all():
            return start
    raise ValueError("these bins hold no curve that can be fitted: use another method")


def _maximize(cells: Likelihood, start: Floats, free: NDArray[np.bool_]) -> tuple[Floats, float, Floats]:
    """Climb by Newton steps, halved until they climb; directions of wrong curvature are turned round."""
    low, high = -_LARGEST_EXPONENT, _LARGEST_EXPONENT
    at = start
    value, gradient, hessian = cells(at)
    for _ in range(_MOST_STEPS):
        held = free.copy()
        held[0] &= not ((at[0] <= low and gradient[0] < 0.0) or (at[0] >= high and gradient[0] > 0.0))
        curvature, axes = np.linalg.eigh(-hessian[np.ix_(held, held)])
        least = np.abs(curvature).max() * 1e-14
        step = np.zeros(3)
        step[held] = axes @ ((axes.T @ gradient[held]) / np.maximum(np.abs(curvature), least))
        gain = float(step @ gradient)
        if gain <= 1e-10 * max(1.0, abs(value)):
            # So near the top a whole step leaves an error of the square: below what the likelihood can tell.
            at = np.array([min(max(at[0] + step[0], low), high), at[1] + step[1], at[2] + step[2]])
            break
        better = None
        for _ in range(50):
            there = at + step
            there[0] = min(max(there[0], low), high)
            if there[1] > 0.0 and (better := cells(there))[0] > value and np.isfinite(better[2]).all():
                break
            better, step = None, step / 2.0
        if better is None:
            break
        at, (value, gradient, hessian) = there, better
    return at, value, -hessian
