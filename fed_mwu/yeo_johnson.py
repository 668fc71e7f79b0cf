"""The Yeo-Johnson transform, its inverse, and its maximum likelihood fit on raw data (METHODS 7; Yeo and Johnson 2000).

The fit finds where the derivative of the profile likelihood is 0, to full precision, and works with logarithms of the
data, so that neither an offset of 1e9 nor a lambda in the thousands overflows. The transform is not equivariant:
another unit of the data gives another lambda. Not promised: that the transformed data are normal.

>>> fit = fit_yeo_johnson([0.2, 0.5, 0.9, 1.6, 3.1, 7.4])
>>> round(fit.lam, 4)
-0.6069
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq
from scipy.special import boxcox1p, inv_boxcox1p, ndtri

from fed_mwu.values import real_values

__all__ = [
    "YeoJohnsonFit",
    "fit_yeo_johnson",
    "growth",
    "inverse_growth",
    "inverse_yeo_johnson",
    "signed_log1p",
    "yeo_johnson",
]

Floats = NDArray[np.float64]

# Where lambda times the logarithm of the data reaches this, the largest value is all that counts.
_LARGEST_EXPONENT = 300.0
_SAMPLE = 5000
_TERMS = np.array([[1.0 / (math.factorial(k) * (k + m + 1)) for k in range(19)] for m in range(3)])


class YeoJohnsonFit(NamedTuple):
    """Parameters of the transform and of the normal distribution after it."""

    lam: float
    mu: float
    sigma: float

    def quantiles(self, probabilities: ArrayLike) -> Floats:
        """Return ``psi^-1(mu + sigma Phi^-1(p); lam)``, infinite where the transform ends before.

        Raises
        ------
        ValueError
            If mu and sigma are beyond float64: the data hardly differ on their own scale; subtract their median first.
        """
        if not (math.isfinite(self.mu) and math.isfinite(self.sigma)):
            raise ValueError("mu or sigma is infinite: subtract the median of the data and fit again")
        return self.from_scores(ndtri(np.asarray(probabilities, dtype=np.float64)))

    def from_scores(self, z: Floats) -> Floats:
        """Return the values with these normal scores."""
        spread = self.sigma * z if self.sigma else np.zeros_like(z)  # 0 times an infinite score would be NaN
        return inverse_yeo_johnson(self.mu + spread, self.lam)


def yeo_johnson(x: ArrayLike, lam: float) -> Floats:
    """Transform values.

    Parameters
    ----------
    x : array_like
        Any shape; infinite where it is.
    lam : float
        The exponent, finite.

    Returns
    -------
    ndarray of float
        ``((x+1)^lam - 1) / lam`` for x >= 0 and ``-((1-x)^(2-lam) - 1) / (2-lam)`` below, logarithms at lam = 0 and 2.

    Raises
    ------
    ValueError
        If `lam` is not finite.
    """
    if not math.isfinite(lam):
        raise ValueError(f"lam must be finite, got {lam!r}")
    values = np.asarray(x, dtype=np.float64)
    with np.errstate(over="ignore"):
        above = boxcox1p(np.maximum(values, 0.0), lam)
        below = -boxcox1p(np.maximum(-values, 0.0), 2.0 - lam)
    result: Floats = np.where(values >= 0.0, above, below)
    return np.where(np.isnan(values), np.nan, result)


def inverse_yeo_johnson(y: ArrayLike, lam: float) -> Floats:
    """Transform back.

    Parameters
    ----------
    y : array_like
        Any shape.
    lam : float
        The exponent, finite.

    Returns
    -------
    ndarray of float
        Infinite beyond the range of the transform, ``y >= -1/lam`` for a negative lam and ``y <= 1/(2-lam)`` for lam
        > 2.

    Raises
    ------
    ValueError
        If `lam` is not finite.
    """
    if not math.isfinite(lam):
        raise ValueError(f"lam must be finite, got {lam!r}")
    values = np.asarray(y, dtype=np.float64)
    above = inverse_growth(np.maximum(values, 0.0), lam)
    below = -inverse_growth(np.maximum(-values, 0.0), 2.0 - lam)
    result: Floats = np.where(values >= 0.0, above, below)
    return np.where(np.isnan(values), np.nan, result)


def inverse_growth(y: Floats, lam: float) -> Floats:
    """Return the x for which ``((x + 1)^lam - 1) / lam`` is y; infinite where that ends before y."""
    lam = 0.0 if abs(lam) < 1e-100 else lam  # there scipy's inverse returns its argument
    with np.errstate(over="ignore"):
        inside = lam * y > -1.0
        return np.where(inside, inv_boxcox1p(np.where(inside, y, 0.0), lam), np.inf)


def signed_log1p(x: Floats) -> Floats:
    """Return ``sign(x) log(1 + |x|)``, whose sum the likelihood takes from the data besides mean and variance."""
    return np.copysign(np.log1p(np.abs(x)), x)


def growth(d: Floats, lam: float | Floats) -> tuple[Floats, Floats, Floats]:
    """Return ``expm1(lam d) / lam`` and its first and second derivatives by `lam`.

    They are ``d^(m+1)`` times the integrals of ``t^m exp(lam d t)`` over (0, 1): a series for small ``lam d``,
    integration by parts for others, where it loses no digits.
    """
    z = np.asarray(lam * d, dtype=np.float64)
    small = np.abs(z) < 1.0
    near, far = np.where(small, z, 0.0), np.where(small, 1.0, z)
    e = np.exp(far)
    i0 = np.expm1(far) / far
    i1 = (e - i0) / far
    i2 = (e - 2.0 * i1) / far
    first, second, third = (
        np.where(small, np.polyval(terms[::-1], near), by_parts)
        for terms, by_parts in zip(_TERMS, (i0, i1, i2), strict=True)
    )
    return d * first, d**2 * second, d**3 * third


def fit_yeo_johnson(x: ArrayLike) -> YeoJohnsonFit:
    """Fit the transform to raw data by maximum likelihood: what the federation must reproduce.

    Parameters
    ----------
    x : array_like of shape (n,)
        NaN is left out.

    Returns
    -------
    YeoJohnsonFit
        ``lam``, ``mu`` and ``sigma`` (with divisor n). Equal values have no maximum: lam is 1, sigma 0.

    Raises
    ------
    ValueError, TypeError
        If there is no value, one is infinite, or the data are no numbers.
    """
    values = np.asarray(real_values(x, "x"), dtype=np.float64)
    values = values[~np.isnan(values)]
    if not values.size:
        raise ValueError("x must hold at least one value, got none")
    if not np.isfinite(values).all():
        raise ValueError("x must be finite: a transform to normality has no place for infinite values")
    low, high = float(values.min()), float(values.max())
    if low == high:
        return YeoJohnsonFit(1.0, low, 0.0)
    if low >= 0.0:
        lam = _fit_positive(values, low, high)
    elif high <= 0.0:  # psi(x; lam) = -psi(-x; 2 - lam)
        lam = 2.0 - _fit_positive(-values, -high, -low)
    else:
        lam = _fit_mixed(values, low, high)
    mu, sigma = _moments(yeo_johnson(values, lam))
    return YeoJohnsonFit(lam, mu, sigma)


def _moments(psi: Floats) -> tuple[float, float]:
    """Return mean and standard deviation; infinite where float64 does not hold them."""
    unit = float(np.abs(psi).max())
    if not math.isfinite(unit):
        return math.copysign(math.inf, float(psi.sum())), math.inf
    return float((psi / unit).mean()) * unit, float((psi / unit).std()) * unit


def _fit_positive(x: Floats, low: float, high: float) -> float:
    """Find lambda for values that are not negative.

    With d the logarithm of ``(1 + x) / (1 + r)`` the variance of psi is ``(1 + r)^(2 lam)`` times that of
    ``expm1(lam d) / lam``, and the likelihood's powers of ``1 + r`` cancel: offsets leave no trace. r is the largest
    value for positive lam and the smallest for negative, so that nothing overflows.
    """
    below = np.log1p((x - high) / (1.0 + high))
    above = np.log1p((x - low) / (1.0 + low))
    sums = {True: float(below.sum()), False: float(above.sum())}

    def slope(lam: float) -> float:
        d = below if lam > 0.0 else above
        return _slope([_growth_and_slope(d, lam)]) + sums[lam > 0.0]

    return _root(slope, _start(x), 1.0 / float(above.std()), -math.inf, math.inf)


def _fit_mixed(x: Floats, low: float, high: float) -> float:
    logs_above, logs_below = np.log1p(x[x >= 0.0]), np.log1p(-x[x < 0.0])
    total = float(logs_above.sum() - logs_below.sum())

    def slope(lam: float) -> float:
        above, by_lam = _growth_and_slope(logs_above, lam)
        below, by_other = _growth_and_slope(logs_below, 2.0 - lam)
        return _slope([(above, by_lam), (-below, by_other)]) + total

    lowest, highest = 2.0 - _LARGEST_EXPONENT / math.log1p(-low), _LARGEST_EXPONENT / math.log1p(high)
    return _root(slope, _start(x), 1.0 / float(np.concatenate((logs_above, -logs_below)).std()), lowest, highest)


def _start(x: Floats) -> tuple[float, float]:
    """Return where to start the search and the first step there, in units of lambda's own scale.

    A few thousand values tell where the maximum of a million is, at a fraction of the cost.
    """
    if x.size <= 4 * _SAMPLE:
        return 1.0, 1.0
    return fit_yeo_johnson(x[:: x.size // _SAMPLE]).lam, 4.0 / math.sqrt(_SAMPLE)


def _growth_and_slope(d: Floats, lam: float) -> tuple[Floats, Floats]:
    """Return ``expm1(lam d) / lam`` and its derivative by `lam`: faster than `growth`, as exact as sums need them."""
    if not d.size or abs(lam) * max(float(d.max()), -float(d.min())) < 1e-2:
        g, g1, _ = growth(d, lam)
        return g, g1
    g = np.expm1(lam * d)
    g1 = g + 1.0
    g1 *= d
    g /= lam
    g1 -= g
    g1 /= lam
    return g, g1


def _slope(parts: list[tuple[Floats, Floats]]) -> float:
    """Return the derivative of ``-(n/2) log var psi`` from psi and its derivative, given in parts."""
    n = sum(psi.size for psi, _ in parts)
    mean = sum(float(psi.sum()) for psi, _ in parts) / n
    # In units of the largest value: its square may overflow or underflow, the ratio does not.
    unit = max(max(float(psi.max()) - mean, mean - float(psi.min())) for psi, _ in parts if psi.size)
    centered = [(psi - mean) / unit for psi, _ in parts]
    covariance = sum(float(c @ by_lam) for c, (_, by_lam) in zip(centered, parts, strict=True)) / unit
    return -n * covariance / sum(float(c @ c) for c in centered)


def _root(
    slope: Callable[[float], float], start: tuple[float, float], scale: float, lowest: float, highest: float
) -> float:
    """Find where a falling slope crosses 0, outwards from the start in growing steps."""
    here, step = start[0], start[1] * scale
    at = slope(here)
    direction = math.copysign(1.0, at)
    while at != 0.0:
        there = min(max(here + direction * step, lowest), highest)
        beyond = slope(there)
        if beyond * direction <= 0.0:
            return float(
                brentq(slope, min(here, there), max(here, there), xtol=1e-14 * max(1.0, abs(there)), rtol=1e-14)
            )
        if there in (lowest, highest) or step > 1e300:
            return there  # the likelihood grows up to the bound
        here, at, step = there, beyond, 2.0 * step
    return here
