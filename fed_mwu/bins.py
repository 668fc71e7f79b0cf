"""Bins of one center's sorted values, and uniting them."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Bins", "unite"]


@dataclass(frozen=True, slots=True)
class Bins:
    """Bins of sorted groups: ``cumulative[j, g]`` values of group g lie in the bins up to j."""

    cumulative: NDArray[np.int64]

    def table_counts(self) -> NDArray[np.float64]:
        """Return the counts as a `Table` holds them, shape (G, B)."""
        return self.counts().T.astype(np.float64)

    def counts(self) -> NDArray[np.int64]:
        """Return the counts, shape (B, G)."""
        counts = self.cumulative.copy()
        counts[1:] -= self.cumulative[:-1]
        return counts

    def cut(self, last: NDArray[np.intp]) -> "Bins":
        """Keep only the bins' ends at the positions `last`; what lay between them is united."""
        return Bins(self.cumulative[last])

    def gaps(self, groups: list[NDArray[np.float64]]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the largest value of each bin but the last, and the smallest value of the bin after it."""
        left = np.full(self.cumulative.shape[0] - 1, -np.inf)
        right = np.full(left.size, np.inf)
        for values, position in zip(groups, self.cumulative[:-1].T, strict=True):
            if values.size:
                before = np.where(position > 0, values[np.maximum(position - 1, 0)], -np.inf)
                after = np.where(position < values.size, values[np.minimum(position, values.size - 1)], np.inf)
                np.maximum(left, before, out=left)
                np.minimum(right, after, out=right)
        return left, right

    def values(self, groups: list[NDArray[np.float64]], j: int) -> NDArray[np.float64]:
        """Return the sorted values of all groups in bin `j`; -1 is the last one."""
        j %= self.cumulative.shape[0]
        start = self.cumulative[j - 1] if j else np.zeros(len(groups), dtype=np.int64)
        parts = [v[a:b] for v, a, b in zip(groups, start, self.cumulative[j], strict=True)]
        return np.sort(np.concatenate(parts))


def unite(counts: NDArray[np.float64] | NDArray[np.int64], thresholds: Sequence[float]) -> NDArray[np.intp]:
    """Unite consecutive bins from the left until every count is 0 or reaches its threshold (METHODS 4, step 2).

    Parameters
    ----------
    counts : ndarray, shape (B, G)
        Counts of the bins; every column sums to 0 or at least its threshold.
    thresholds : sequence of G numbers

    Returns
    -------
    ndarray of int
        Position of the last bin of each united bin. A remainder at the right is joined with those on its left.
    """
    width = counts.shape[1]
    last: list[int] = []
    sums: list[list[float]] = []
    running = [0.0] * width
    for j, row in enumerate(counts.tolist()):
        running = [a + b for a, b in zip(running, row, strict=True)]
        if _private(running, thresholds):
            last.append(j)
            sums.append(running)
            running = [0.0] * width
    final = counts.shape[0] - 1
    if last[-1:] != [final]:
        while last and not _private(running, thresholds):
            last.pop()
            running = [a + b for a, b in zip(running, sums.pop(), strict=True)]
        last.append(final)
    return np.array(last, dtype=np.intp)


def _private(counts: Sequence[float], thresholds: Sequence[float]) -> bool:
    return all(c == 0 or c >= t for c, t in zip(counts, thresholds, strict=True))
