"""The table that travels: limits, counts, and what makes it K-anonymous.

A table is not differentially private; it promises that every count is 0 or at least K (paper, "Federated binning"). A
table of B bins and G groups costs ``8 * (B + 1 + G * B)`` bytes on the wire.

References
----------
Becher, Marcus-Kalish and Steinberg (2023), "Federated statistical analysis: non-parametric testing and quantile
estimation", doi 10.3389/fams.2023.1267034.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["RELATIVE_TOLERANCE", "Table", "are_private"]

# Adding centers divides counts in proportion, which rounds: 30 * 10 / 30 may come out a few units in the last place
# below 10. No honest count lies this close below K, as counts of patients are whole numbers.
RELATIVE_TOLERANCE = 1e-9


def are_private(counts: ArrayLike, k: float) -> NDArray[np.bool_]:
    """Tell for each count whether it is 0 or at least `k`.

    Parameters
    ----------
    counts : array_like of float
        Counts of any shape.
    k : float
        The anonymity threshold, at least 1.

    Returns
    -------
    ndarray of bool
        Same shape as `counts`.
    """
    numbers: NDArray[np.float64] = np.asarray(counts, dtype=np.float64)
    private: NDArray[np.bool_] = (numbers == 0.0) | (numbers >= k * (1.0 - RELATIVE_TOLERANCE))
    return private


def _read_only(values: ArrayLike, name: str, ndim: int) -> NDArray[np.float64]:
    # One layout in memory: sums over another one could differ in the last bit.
    array = np.array(values, dtype=np.float64, order="C")
    if array.ndim != ndim:
        raise ValueError(f"{name} must have {ndim} dimension(s), got {array.ndim}")
    array.flags.writeable = False
    return array


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """Counts of G groups in B bins: what the federation passes on.

    Bin ``j`` is ``(limits[j], limits[j + 1]]``; the first one is closed on the left too.

    Parameters
    ----------
    limits : array_like of float, shape (B + 1,)
        Strictly increasing, in the units of the variable; the two ends may be infinite.
    counts : array_like of float, shape (G, B)
        Finite and not negative. Adding a center can make them fractional (METHODS 4).

    Raises
    ------
    ValueError
        If shapes do not fit, limits do not increase or a count is negative or not finite.

    Examples
    --------
    >>> table = Table([0, 2, 4], [[12, 10], [10, 10]])
    >>> table.sizes
    array([22., 20.])
    >>> table.is_private(10)
    True
    """

    limits: NDArray[np.float64]
    counts: NDArray[np.float64]

    def __post_init__(self) -> None:
        limits = _read_only(self.limits, "limits", 1)
        counts = _read_only(self.counts, "counts", 2)
        if limits.size < 2 or counts.shape != (counts.shape[0], limits.size - 1) or not counts.shape[0]:
            raise ValueError(
                "limits and counts must have shapes (B + 1,) and (G, B) with B, G >= 1, "
                f"got {limits.shape} and {counts.shape}"
            )
        if not (limits[1:] > limits[:-1]).all():
            raise ValueError("limits must be strictly increasing and free of NaN")
        if not (np.isfinite(counts).all() and (counts >= 0.0).all()):
            raise ValueError("counts must be finite and not negative")
        object.__setattr__(self, "limits", limits)
        object.__setattr__(self, "counts", counts)

    @property
    def n_bins(self) -> int:
        """Number of bins B."""
        return int(self.counts.shape[1])

    @property
    def n_groups(self) -> int:
        """Number of groups G."""
        return int(self.counts.shape[0])

    @property
    def sizes(self) -> NDArray[np.float64]:
        """Total count of each group, shape (G,)."""
        totals: NDArray[np.float64] = self.counts.sum(axis=1)
        return totals

    def is_private(self, k: float) -> bool:
        """Tell whether every count is 0 or at least `k`."""
        return bool(are_private(self.counts, k).all())

    def cdf(self, group: int = 0) -> NDArray[np.float64]:
        """Share of a group at or below each limit.

        Parameters
        ----------
        group : int
            Row of `counts`.

        Returns
        -------
        ndarray of float, shape (B + 1,)
            Starts at 0, ends at 1 exactly, never decreases.

        Raises
        ------
        ValueError
            If the group is empty: its distribution is then not defined.
        """
        cumulative: NDArray[np.float64] = np.concatenate(([0.0], np.cumsum(self.counts[group])))
        if cumulative[-1] == 0.0:
            raise ValueError(f"group {group} of this table is empty, so it has no distribution")
        shares: NDArray[np.float64] = cumulative / cumulative[-1]
        return shares

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Table):
            return NotImplemented
        return np.array_equal(self.limits, other.limits) and np.array_equal(self.counts, other.counts)

    def __hash__(self) -> int:
        return hash((self.limits.tobytes(), self.counts.tobytes()))
