"""The Yeo-Johnson likelihood of counts in bins, with gradient and Hessian, on the data's own scale (METHODS 8)."""

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr

from fed_mwu.yeo_johnson import growth, inverse_growth, inverse_yeo_johnson

__all__ = ["SMALLEST_REACH", "Likelihood", "Scale"]

# Of data this small the square underflows, which is what lambda works on.
SMALLEST_REACH = 1e-100

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Scale:
    """Where v is 0 and what it is measured in; limits below 0 at the reference are mirrored first."""

    reference: float
    unit: float
    mirrored: bool

    def values(self, limits: Floats, lam: float) -> tuple[Floats, Floats, Floats]:
        """Return v at (mirrored) limits, and its first and second derivatives by lambda."""
        base = math.log1p(self.reference)
        above = limits >= 0.0
        g, g1, g2 = growth(_log_ratio(np.where(above, limits, 0.0), self.reference), lam)
        factor = (1.0 + self.reference) / self.unit
        v, v1, v2 = factor * g, factor * g1, factor * g2
        if not above.all():
            h, h1, h2 = growth(np.log1p(np.where(above, 0.0, -limits)), 2.0 - lam)
            shrink = math.exp((1.0 - lam) * base) / self.unit
            w, w1, w2 = -shrink * h, shrink * (h1 + base * h), -shrink * (h2 + 2.0 * base * h1 + base**2 * h)
            # Below 0 comes what lies between 0 and the reference (already in v) and then the negative branch.
            v, v1, v2 = v + np.where(above, 0.0, w), v1 + np.where(above, 0.0, w1), v2 + np.where(above, 0.0, w2)
        return v, v1, v2

    def inverse(self, v: Floats, lam: float) -> Floats:
        """Return the (mirrored) limits at which v has these values."""
        base = math.log1p(self.reference)
        with np.errstate(over="ignore"):
            zero = -base if lam == 0.0 else np.expm1(-lam * base) / lam
        zero *= (1.0 + self.reference) / self.unit
        with np.errstate(over="ignore", invalid="ignore"):  # of infinite v and zero the other branch is taken
            ratio = inverse_growth(np.maximum(v, zero) * (self.unit / (1.0 + self.reference)), lam)
            above = np.maximum(self.reference + (1.0 + self.reference) * ratio, 0.0)
            below_zero = np.where(v < zero, v - zero, 0.0)
            psi = below_zero * self.unit * math.exp(min((lam - 1.0) * base, 700.0))
            psi = np.where(np.isneginf(below_zero), -np.inf, psi)  # even where that factor is 0
        return np.where(v >= zero, above, inverse_yeo_johnson(psi, lam))


@dataclass(frozen=True, slots=True)
class Likelihood:
    """The likelihood of all cells, with its gradient and Hessian."""

    limits: Floats
    lower: NDArray[np.intp]
    upper: NDArray[np.intp]
    counts: Floats
    scale: Scale
    reach: float = field(init=False)
    """The largest logarithm that lambda is multiplied with."""

    def __post_init__(self) -> None:
        relative = _log_ratio(np.maximum(self.limits, 0.0), self.scale.reference)
        below = np.log1p(np.maximum(-self.limits, 0.0))
        reach = max(float(np.abs(relative).max()), float(below.max()), SMALLEST_REACH)
        object.__setattr__(self, "reach", reach)

    def lam(self, tilt: float) -> float:
        """Return lambda from its place on the data's own scale, on which +-1 bends the curve visibly."""
        return 1.0 + tilt / self.reach

    def __call__(self, parameters: Floats) -> tuple[float, Floats, Floats]:
        """Return value, gradient and Hessian at ``(tilt, alpha, beta)``; not finite far from any sense."""
        with np.errstate(all="ignore"):
            return self._evaluate(parameters)

    def _evaluate(self, parameters: Floats) -> tuple[float, Floats, Floats]:
        tilt, alpha, beta = parameters.tolist()
        v, v1, v2 = self.scale.values(self.limits, self.lam(tilt))
        v1, v2 = v1 / self.reach, v2 / self.reach**2
        b = alpha * v + beta
        # Two more places: no limit below (-infinity) and none above (infinity), where all derivatives are 0.
        b = np.concatenate((b, [np.inf, -np.inf]))
        first = np.zeros((3, b.size))
        first[0, :-2], first[1, :-2], first[2, :-2] = alpha * v1, v, 1.0
        second = np.zeros((2, b.size))  # by lam twice, by lam and alpha; the others are 0
        second[0, :-2], second[1, :-2] = alpha * v2, v1
        high, low = b[self.upper], b[self.lower]
        log_p = _log_difference(high, low)
        at_high, at_low = _density_ratio(high, log_p), _density_ratio(low, log_p)
        slope = at_high * first[:, self.upper] - at_low * first[:, self.lower]
        hessian = -(slope * self.counts) @ slope.T
        for ratio, at, places, sign in ((at_high, high, self.upper, 1.0), (at_low, low, self.lower, -1.0)):
            weight = sign * self.counts * ratio
            rows = first[:, places]
            hessian -= (rows * (weight * np.where(np.isfinite(at), at, 0.0))) @ rows.T
            hessian[0, 0] += weight @ second[0, places]
            cross = weight @ second[1, places]
            hessian[0, 1] += cross
            hessian[1, 0] += cross
        return float(self.counts @ log_p), slope @ self.counts, hessian


def _log_ratio(x: Floats, reference: float) -> Floats:
    """Return ``log((1 + x) / (1 + reference))`` of values that are not negative."""
    ratio = (x - reference) / (1.0 + reference)
    near = ratio > -0.5  # there the difference counts; far from it that would round to the end of the logarithm
    difference: Floats = np.where(near, np.log1p(np.where(near, ratio, 0.0)), np.log1p(x) - math.log1p(reference))
    return difference


def _log_difference(high: Floats, low: Floats) -> Floats:
    """Return ``log(Phi(high) - Phi(low))``, on the side of 0 where it loses no digits."""
    flip = low > 0.0
    upper, lower = np.where(flip, -low, high), np.where(flip, -high, low)
    top = log_ndtr(upper)
    with np.errstate(divide="ignore"):
        log_difference: Floats = top + np.log(-np.expm1(np.minimum(log_ndtr(lower) - top, 0.0)))
    return log_difference


def _density_ratio(b: Floats, log_p: Floats) -> Floats:
    """Return ``phi(b) / P``."""
    finite = np.isfinite(b)
    exponent = -0.5 * np.where(finite, b, 0.0) ** 2 - 0.5 * math.log(2.0 * math.pi) - log_p
    ratio: Floats = np.where(finite, np.exp(np.minimum(exponent, 700.0)), 0.0)
    return ratio
