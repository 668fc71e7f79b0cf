"""The quantile loss ``sum rho_p(x - q)``, its sub-gradient, and the search for its minimum (paper, "quantile loss").

The benchmark of the paper. It gives data away: the loss has a kink at every value. A center answers only if its own
configuration allows it.

The search runs over the float64 numbers themselves, in their order: 63 candidates a round cut what is left to a 64th,
so 11 rounds single out one number of 2^64, the sample quantile to the last bit, from nothing known about the data.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["CANDIDATES", "LossAnswer", "QuantileSearch", "loss_and_gradient"]

Floats = NDArray[np.float64]

CANDIDATES = 63
_INFINITY = 0x7FF0_0000_0000_0000


@dataclass(frozen=True, slots=True)
class LossAnswer:
    """Loss and the two ends of its sub-gradient at some q, for one probability each; they add up over centers."""

    loss: Floats
    lower: Floats
    upper: Floats


def loss_and_gradient(values: Floats, q: Floats, probabilities: Floats) -> LossAnswer:
    """Compute a center's answer.

    Parameters
    ----------
    values : ndarray of shape (n,)
        Sorted, finite.
    q : ndarray of shape (P, M)
        Candidates for each probability.
    probabilities : ndarray of shape (P,)

    Returns
    -------
    LossAnswer
        Arrays of shape (P, M). The sub-gradient of the sum is ``[#(x < q) - p n, #(x <= q) - p n]``.
    """
    p = probabilities[:, np.newaxis]
    below = np.searchsorted(values, q, side="left")
    at_most = np.searchsorted(values, q, side="right")
    sums = np.concatenate(([0.0], np.cumsum(values)))
    # The asked q may be as large as numbers get; a loss that overflows is infinite, and no matter to the search.
    with np.errstate(over="ignore", invalid="ignore"):
        left = below * q - sums[below]
        right = (sums[-1] - sums[at_most]) - (values.size - at_most) * q
        loss = np.where(below > 0, (1.0 - p) * left, 0.0) + np.where(at_most < values.size, p * right, 0.0)
    return LossAnswer(loss, below - p * values.size, at_most - p * values.size)


def _numbers(places: list[int]) -> Floats:
    """Return the float64 at places in the order of all of them; 0 is at 0."""
    signed = np.array(places, dtype=np.int64)
    return np.copysign(np.abs(signed).view(np.float64), signed)


@dataclass(slots=True)
class QuantileSearch:
    """Search for the smallest q with ``#(x <= q) >= p n``, the sample quantile (numpy's "inverted_cdf").

    Parameters
    ----------
    probability : float
    """

    probability: float
    low: int = -_INFINITY - 1
    high: int = _INFINITY

    @property
    def done(self) -> bool:
        """Whether one number is left."""
        return self.high - self.low <= 1

    @property
    def answer(self) -> float:
        """The smallest number known to be large enough."""
        return float(_numbers([self.high])[0])

    def candidates(self) -> Floats:
        """Return the numbers to ask about, evenly spread in the order of numbers."""
        return _numbers([max(place, -_INFINITY) for place in self._places()])

    def _places(self) -> list[int]:
        width = self.high - self.low
        return [self.low + width * i // (CANDIDATES + 1) for i in range(1, CANDIDATES + 1)]

    def narrow(self, upper: Floats, n: float) -> None:
        """Take the pooled upper sub-gradients at the candidates."""
        # A rounding error of p n must not ask for one value more.
        rank = max(1.0, math.ceil(self.probability * n * (1.0 - 1e-12)))
        enough = np.round(upper + self.probability * n) >= rank
        first = int(np.argmax(enough)) if enough.any() else CANDIDATES
        places = self._places()
        low = places[first - 1] if first else self.low
        self.high = places[first] if first < CANDIDATES else self.high
        self.low = low
