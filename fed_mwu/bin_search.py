"""Find the bins of one center's sorted values (paper, Algorithms 1-3; METHODS 2, whose step numbers stand below).

The search goes from bin end to bin end and reads a few values near each: its time grows with the number of bins, not of
values.
"""

from bisect import bisect_right
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fed_mwu.bins import Bins

__all__ = ["find_bins", "raised_thresholds"]


def raised_thresholds(sizes: Sequence[int], k: int, max_bins: int) -> list[int]:
    """Return the K that ends bins for each group of a center (METHODS 2, choice of size).

    A group smaller than the raised K would be pressed into a single bin that spans most of the data: it keeps a K in
    proportion to its own size instead.
    """
    if not max_bins:
        return [k] * len(sizes)
    raised = max(k, -(-sum(sizes) // max_bins))
    return [raised if size >= raised else max(k, -(-size // max_bins)) for size in sizes]


def find_bins(groups: list[NDArray[np.float64]], thresholds: Sequence[int]) -> Bins:
    """Find the bins of sorted groups: each group has no value or at least its threshold in every bin."""
    return _join_stretched(Bins(_walk(groups, thresholds)), thresholds)


class _Group(NamedTuple):
    """Sorted values of a group, their number, and the least number of them in a bin."""

    # Single values are read many times: a memoryview gives them several times faster than the array does.
    values: memoryview
    size: int
    k: int


def _walk(groups: list[NDArray[np.float64]], thresholds: Sequence[int]) -> NDArray[np.int64]:
    """Go through steps 1 and 2; return the cumulative counts at each bin's end, shape (B, G)."""
    sorted_groups = [_Group(v.data, v.size, k) for v, k in zip(groups, thresholds, strict=True)]
    sizes = [group.size for group in sorted_groups]
    position = [0] * len(groups)
    found: list[list[int]] = []
    while position != sizes:
        end = _next_end(sorted_groups, position)
        if end is not None:
            position = end
            found.append(position)
        else:
            position = _stretch(sorted_groups, position)
            found[-1] = position
    return np.array(found, dtype=np.int64)


def _next_end(groups: list[_Group], position: list[int]) -> list[int] | None:
    """Find step 1's smallest end; return the positions there, or None if there is no such end.

    The end is at least the smallest K-th value. A group that has any value up to there must have K of them, which moves
    the end to its own K-th value; all groups are asked again until none moves it.
    """
    end: float | None = None
    for (values, size, k), p in zip(groups, position, strict=True):
        if p + k <= size and (end is None or values[p + k - 1] < end):
            end = values[p + k - 1]
    if end is None:
        return None
    reached = position.copy()
    g = agreed = 0
    while agreed < len(groups):
        values, size, k = groups[g]
        q = position[g]
        agreed += 1
        if q < size and values[q] <= end:
            q += k
            if q > size:
                return None
            if values[q - 1] > end:
                end = values[q - 1]
                agreed = 1
            if q < size and values[q] <= end:
                q = _search(values, end, q, size, k)
        reached[g] = q
        g = g + 1 if g + 1 < len(groups) else 0
    return reached


def _search(view: memoryview, value: float, start: int, size: int, step: int) -> int:
    """Return how many values are at most `value`, knowing that `start` are: doubling steps stay near `start`."""
    if start == size or view[start] > value:
        return start
    low, high = start, start + step
    while high < size and view[high] <= value:
        low, step = high, 2 * step
        high = low + step
    return bisect_right(view, value, low + 1, min(high, size))


def _stretch(groups: list[_Group], position: list[int]) -> list[int]:
    """Step 2: move the end of the last bin to the largest value of a group that has too few values left.

    Of several such groups the one that ends first is taken, so that the others may still go on.
    """
    end = min(values[size - 1] for (values, size, k), p in zip(groups, position, strict=True) if 0 < size - p < k)
    return [_search(values, end, p, size, k) for (values, size, k), p in zip(groups, position, strict=True)]


def _join_stretched(bins: Bins, thresholds: Sequence[int]) -> Bins:
    """Step 3: join each bin that is not private with its left neighbours until it is.

    The leftmost bin has none and takes its right neighbours instead, a case that the paper does not mention.
    """
    last = list(range(bins.cumulative.shape[0]))
    while True:
        kept = bins.cut(np.array(last))
        wrong = np.flatnonzero(~_private_rows(kept.counts(), thresholds))
        if not wrong.size:
            return kept
        j = int(wrong[0])
        del last[j - 1 if j else 0]


def _private_rows(counts: NDArray[np.int64], thresholds: Sequence[int]) -> NDArray[np.bool_]:
    private: NDArray[np.bool_] = ((counts == 0) | (counts >= np.asarray(thresholds))).all(axis=1)
    return private
