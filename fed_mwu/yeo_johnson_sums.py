"""The Yeo-Johnson fit to data that stay where they are: each center sends sums at asked lambdas (METHODS 8, "YJ data").

For each lambda a center tells mean and sum of squared deviations of its transformed values, which pool without loss
of digits whatever offset the data have, and once the sum of ``sign(x) log(1 + |x|)``. The profile likelihood is
smooth in lambda: asked at Chebyshev nodes it is known between them, so two rounds find its maximum where a search one
lambda at a time takes thirty.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.polynomial.chebyshev import Chebyshev, chebpts1
from numpy.typing import NDArray
from scipy.special import ndtri

from fed_mwu.yeo_johnson import YeoJohnsonFit, signed_log1p, yeo_johnson

__all__ = ["Profile", "TransformSums", "chebyshev_nodes", "next_nodes", "pool_sums", "transform_sums"]

Floats = NDArray[np.float64]

FIRST_INTERVAL = (-2.0, 4.0)
FIRST_NODES = 17
NEXT_NODES = 13
# In units of lambda's own scale, one over the standard deviation of the logarithms.
WIDE, NARROW = 5.0, 0.14
MOST_ROUNDS = 3


@dataclass(frozen=True, slots=True)
class TransformSums:
    """What a center tells of one group.

    Parameters
    ----------
    n : float
        Size.
    log_sum, log_squares : float
        Sum and squared deviations of ``sign(x) log(1 + |x|)``.
    means, squares : ndarray of shape (Q,)
        Mean and squared deviations of the transformed values, for each lambda.
    """

    n: float
    log_sum: float
    log_squares: float
    means: Floats
    squares: Floats


def transform_sums(values: Floats, lams: Floats) -> TransformSums:
    """Compute a center's sums.

    Parameters
    ----------
    values : ndarray of shape (n,)
        Finite values of one group.
    lams : ndarray of shape (Q,)
    """
    if not values.size:
        return TransformSums(0.0, 0.0, 0.0, np.zeros(lams.size), np.zeros(lams.size))
    means, squares = np.empty(lams.size), np.empty(lams.size)
    with np.errstate(over="ignore", invalid="ignore"):  # the server sees what overflowed, and asks elsewhere
        for i, lam in enumerate(lams.tolist()):
            psi = yeo_johnson(values, lam)
            means[i] = psi.mean()
            squares[i] = np.square(psi - means[i]).sum()
    logs = signed_log1p(values)
    log_squares = float(np.square(logs - logs.mean()).sum())
    return TransformSums(float(values.size), float(logs.sum()), log_squares, means, squares)


def pool_sums(parts: Sequence[TransformSums]) -> TransformSums:
    """Return the sums of all centers together (Chan, Golub and LeVeque 1983)."""
    used = [part for part in parts if part.n]
    n = sum(part.n for part in used)
    mean = sum(part.n * part.means for part in used) / n
    squares = sum(part.squares + part.n * (part.means - mean) ** 2 for part in used)
    log_sum = sum(part.log_sum for part in used)
    log_squares = sum(part.log_squares + part.n * (part.log_sum / part.n - log_sum / n) ** 2 for part in used)
    return TransformSums(n, log_sum, log_squares, np.asarray(mean), np.asarray(squares))


def chebyshev_nodes(interval: tuple[float, float], number: int) -> Floats:
    """Return the nodes at which an interval's functions are best interpolated."""
    low, high = interval
    return 0.5 * (low + high) + 0.5 * (high - low) * chebpts1(number)


@dataclass(frozen=True, slots=True)
class Profile:
    """The profile likelihood between the nodes of an interval.

    Parameters
    ----------
    interval : tuple of float
        Where the nodes are those of `chebyshev_nodes`.
    sums : TransformSums
        Pooled.
    """

    interval: tuple[float, float]
    sums: TransformSums

    @property
    def constant(self) -> bool:
        """Whether all values are equal: the likelihood then has no maximum."""
        return bool((self.sums.squares <= 1e-26 * self.sums.n * np.square(self.sums.means)).all())

    @property
    def usable(self) -> bool:
        """Whether no sum has overflowed."""
        return bool(np.isfinite(self.sums.means).all() and np.isfinite(self.sums.squares).all())

    def _curve(self, values: Floats) -> Chebyshev:
        return Chebyshev.fit(chebyshev_nodes(self.interval, values.size), values, values.size - 1, domain=self.interval)

    def likelihood(self) -> Chebyshev:
        """Return ``-(n/2) log var psi + (lam - 1) sum sign(x) log(1 + |x|)`` as a polynomial in lambda."""
        lams = chebyshev_nodes(self.interval, self.sums.squares.size)
        values = -0.5 * self.sums.n * np.log(self.sums.squares / self.sums.n) + (lams - 1.0) * self.sums.log_sum
        return self._curve(values - values.max())

    def best(self) -> float:
        """Return where the likelihood is largest, which may be an end of the interval."""
        curve = self.likelihood()
        roots = curve.deriv().roots()
        inside = roots[np.abs(roots.imag) < 1e-8].real
        low, high = self.interval
        candidates = np.concatenate(([low, high], inside[(inside >= low) & (inside <= high)]))
        return float(candidates[np.argmax(curve(candidates))])

    def fit(self) -> YeoJohnsonFit:
        """Return the fit at the maximum; of equal values lambda 1 and their value."""
        if self.constant:
            return YeoJohnsonFit(1.0, self._only_value(), 0.0)
        return self._fit_at(self.best())

    def _only_value(self) -> float:
        """Return the value that all values have, from their transform at the node nearest to lambda = 1."""
        lams = chebyshev_nodes(self.interval, self.sums.means.size)
        at = int(np.argmin(np.abs(lams - 1.0)))
        return float(YeoJohnsonFit(float(lams[at]), float(self.sums.means[at]), 0.0).quantiles([0.5])[0])

    def _fit_at(self, lam: float) -> YeoJohnsonFit:
        mean = float(self._curve(self.sums.means)(lam))
        # The logarithm is the smoother one to interpolate.
        log_variance = float(self._curve(np.log(self.sums.squares / self.sums.n))(lam))
        return YeoJohnsonFit(lam, mean, float(np.exp(0.5 * log_variance)))

    def interval_of(self, probabilities: Floats, level: float) -> tuple[Floats, Floats]:
        """Return confidence limits of quantiles (delta method): lambda's share from the curvature of the profile."""
        fit = self.fit()
        if fit.sigma == 0.0:
            found = fit.quantiles(probabilities)
            return found, found
        z = ndtri(probabilities)
        ends = ~np.isfinite(z)  # quantiles of 0 and 1 are the ends of the distribution, without doubt
        information = max(-float(self.likelihood().deriv(2)(fit.lam)), 1e-300)
        step = 1e-3 * (self.interval[1] - self.interval[0])
        # How the quantile's own normal score moves with lambda, mean and deviation following it.
        quantiles = fit.quantiles(np.where(ends, 0.5, probabilities))
        moved = [
            (yeo_johnson(quantiles, f.lam) - f.mu) / f.sigma
            for f in map(self._fit_at, (fit.lam - step, fit.lam + step))
        ]
        by_lam = (moved[1] - moved[0]) / (2.0 * step)
        half = ndtri(0.5 + level / 2.0) * np.sqrt((1.0 + z**2 / 2.0) / self.sums.n + by_lam**2 / information)
        half = np.where(ends, 0.0, half)
        return fit.from_scores(z - half), fit.from_scores(z + half)


def next_nodes(profile: Profile) -> tuple[float, float] | None:
    """Return the interval to ask next, or None if the maximum is known to full precision.

    A wide interval only tells where to look. A maximum at its end is looked for on lambda's own scale, which may be
    far from 1 for data that hardly differ from each other.
    """
    if profile.constant:
        return None
    low, high = profile.interval
    best, half = profile.best(), 0.5 * (high - low)
    unit = float(np.sqrt(profile.sums.n / profile.sums.log_squares))
    if best in (low, high):
        return (1.0 - WIDE * unit, 1.0 + WIDE * unit)
    if half <= NARROW * unit * 1.001:
        return None
    return (best - NARROW * unit, best + NARROW * unit)
