"""One center's values become a K-anonymous table (paper, "Federated binning", Algorithms 1-3; METHODS 2 and 3).

Bins close, from small to large values, as soon as one group has K values and every other group has 0 or at least K.
With two groups of 300 values and K = 10 that gives some 20 bins. The center gives away the table and nothing else.
Not promised: that K values in a bin differ from each other.

The steps below carry the numbers of METHODS 2.
"""

import operator
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fed_mwu.errors import BelowK, NotPrivate
from fed_mwu.limits import DEFAULT_KEY, Ends, interior_limits
from fed_mwu.table import Table
from fed_mwu.values import real_values

__all__ = [
    "DEFAULT_MAX_BINS",
    "Bins",
    "bin_center",
    "bin_sorted",
    "check_private",
    "check_settings",
    "check_sizes",
    "extremes",
    "find_bins",
    "raised_thresholds",
    "sorted_groups",
    "unite",
]

DEFAULT_MAX_BINS = 1000


def bin_center(
    groups: Sequence[ArrayLike],
    *,
    k: int,
    ends: Ends = Ends("open"),
    key: bytes = DEFAULT_KEY,
    max_bins: int = DEFAULT_MAX_BINS,
) -> Table:
    """Bin the values of one center.

    Parameters
    ----------
    groups : sequence of G array_like, each of shape (n_g,)
        The values of each group in any order. NaN is left out. Infinite values are allowed unless `ends` are buffers.
    k : int
        Anonymity threshold, at least 1: every count of the table is 0 or at least `k`.
    ends : Ends
        Where the first and last limit stand.
    key : bytes
        Secret of the center together with the identity of the column; it places the limits inside their gaps.
    max_bins : int
        A large center uses ``max(k, ceil(N / max_bins))`` instead of `k` to end its bins: a table of a million bins
        helps no estimate. 0 means no cap.

    Returns
    -------
    Table
        The same for any order of the values.

    Raises
    ------
    BelowK
        A `ValueError`: a group has some values, but fewer than `k`.
    ValueError, TypeError
        If no group has any value, `ends` cannot hold the data, or an argument is not what it should be.

    Examples
    --------
    >>> bin_center([[1, 2, 3, 4], [2, 3, 5, 6]], k=2).counts
    array([[2., 2.],
           [2., 2.]])
    """
    check_settings(k, max_bins)
    return bin_sorted(sorted_groups(groups), k=k, ends=ends, key=key, max_bins=max_bins)


def check_settings(k: int, max_bins: int) -> None:
    """Refuse a `k` or `max_bins` that is no whole number or too small."""
    for name, value, least in (("k", k, 1), ("max_bins", max_bins, 0)):
        try:
            whole = operator.index(value)
        except TypeError:
            raise TypeError(f"{name} must be a whole number, got {value!r}") from None
        if whole < least:
            raise ValueError(f"{name} must be at least {least}, got {value!r}")


def sorted_groups(groups: Sequence[ArrayLike]) -> list[NDArray[np.float64]]:
    """Return the values of each group sorted, as float64, without NaN; the inputs stay as they are."""
    if len(groups) == 0:
        raise ValueError("groups must hold at least one array of values, got none")
    result = []
    for number, values in enumerate(groups):
        ordered = np.sort(real_values(values, f"groups[{number}]").astype(np.float64, copy=False))
        # NaN sorts to the end, where one search finds it: cheaper than testing every value.
        result.append(ordered[: int(np.searchsorted(ordered, np.nan))])
    return result


def check_sizes(groups: list[NDArray[np.float64]], k: int) -> list[int]:
    """Return the sizes of the groups; refuse a center that has nothing, or too little of a group, to release."""
    sizes = [values.size for values in groups]
    if not any(sizes):
        raise ValueError("no group has any value, so there is nothing to bin")
    for number, size in enumerate(sizes):
        if 0 < size < k:
            raise BelowK(number, k)
    return sizes


def extremes(groups: list[NDArray[np.float64]]) -> tuple[float, float]:
    """Return the smallest and the largest value over all groups."""
    filled = [values for values in groups if values.size]
    return min(float(v[0]) for v in filled), max(float(v[-1]) for v in filled)


def bin_sorted(groups: list[NDArray[np.float64]], *, k: int, ends: Ends, key: bytes, max_bins: int) -> Table:
    """Do the work of `bin_center` on what `sorted_groups` returns."""
    sizes = check_sizes(groups, k)
    ends.check(*extremes(groups))
    bins = _cap(find_bins(groups, raised_thresholds(sizes, k, max_bins)), max_bins)
    left, right = bins.gaps(groups)
    inner = interior_limits(left, right, key=key)
    upper = ends.upper(bins.values(groups, -1))
    # One bin of equal values: buffers have no width there, and a bin must have some.
    lower = min(ends.lower(bins.values(groups, 0)), float(np.nextafter(upper, -np.inf)))
    limits = np.concatenate(([lower], inner, [upper]))
    # Where two neighbouring numbers hold whole bins, no number is left between them and an end: the bins are one.
    keep = np.concatenate(([True], (limits[1:-1] > lower) & (limits[1:-1] < upper), [True]))
    table = Table(limits[keep], bins.cut(np.flatnonzero(keep[1:])).counts().T)
    check_private(table, sizes, k)
    return table


def check_private(table: Table, sizes: Sequence[float], k: int) -> None:
    """Check the invariant of METHODS 2, step 4, before a table leaves a center.

    Raises
    ------
    NotPrivate
        If a count is not private or the counts do not add up to the center's sizes.
    """
    if not table.is_private(k):
        raise NotPrivate(f"a count of this table lies between 0 and k={k}")
    if not np.array_equal(table.sizes, np.asarray(sizes, dtype=np.float64)):
        raise NotPrivate("the counts of this table do not add up to the sizes of the groups")


@dataclass(frozen=True, slots=True)
class Bins:
    """Bins of sorted groups: ``cumulative[j, g]`` values of group g lie in the bins up to j."""

    cumulative: NDArray[np.int64]

    def counts(self) -> NDArray[np.int64]:
        """Return the counts, shape (B, G)."""
        return np.diff(self.cumulative, axis=0, prepend=0)

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


def _cap(bins: Bins, max_bins: int) -> Bins:
    """Unite bins until there are at most `max_bins`: a small group that keeps its own K can lead to more."""
    if not max_bins or bins.cumulative.shape[0] <= max_bins:
        return bins
    totals = bins.counts().sum(axis=1, keepdims=True)
    return bins.cut(unite(totals, [-(-int(totals.sum()) // max_bins)]))


def _walk(groups: list[NDArray[np.float64]], thresholds: Sequence[int]) -> NDArray[np.int64]:
    """Go through steps 1 and 2 of METHODS 2; return the cumulative counts at each bin's end, shape (B, G)."""
    # Single values are read many times: a memoryview gives them several times faster than the array does.
    views = [memoryview(values) for values in groups]
    sizes = [values.size for values in groups]
    position = [0] * len(groups)
    found: list[list[int]] = []
    while position != sizes:
        end = _next_end(views, sizes, position, thresholds)
        if end is not None:
            position = end
            found.append(position)
        else:
            position = _stretch(views, sizes, position, thresholds)
            found[-1] = position
    return np.array(found, dtype=np.int64)


def _next_end(
    views: list[memoryview], sizes: list[int], position: list[int], thresholds: Sequence[int]
) -> list[int] | None:
    """Find step 1's smallest end; return the positions there, or None if there is no such end.

    One search per group instead of a scan: the end is at least some group's K-th value; a group that then has a few
    values must have K of them, which moves the end to its own K-th value.
    """
    end = _first_candidate(views, sizes, position, thresholds)
    if end is None:
        return None
    moved = True
    while moved:
        moved = False
        reached = []
        for g, view in enumerate(views):
            p, size = position[g], sizes[g]
            q = _search(view, end, p, size, thresholds[g])
            if 0 < q - p < thresholds[g]:
                if p + thresholds[g] > size:
                    return None
                end = view[p + thresholds[g] - 1]
                moved = True
                break
            reached.append(q)
    return reached


def _first_candidate(
    views: list[memoryview], sizes: list[int], position: list[int], thresholds: Sequence[int]
) -> float | None:
    smallest: float | None = None
    for view, size, p, k in zip(views, sizes, position, thresholds, strict=True):
        if p + k <= size:
            value: float = view[p + k - 1]
            if smallest is None or value < smallest:
                smallest = value
    return smallest


def _search(view: memoryview, value: float, start: int, size: int, step: int) -> int:
    """Return how many values are at most `value`, knowing that `start` are: doubling steps stay near `start`."""
    if start == size or view[start] > value:
        return start
    low, high = start, start + step
    while high < size and view[high] <= value:
        low, step = high, 2 * step
        high = low + step
    return bisect_right(view, value, low + 1, min(high, size))


def _stretch(views: list[memoryview], sizes: list[int], position: list[int], thresholds: Sequence[int]) -> list[int]:
    """Step 2: move the end of the last bin to the largest value of a group that has too few values left.

    Of several such groups the one that ends first is taken, so that the others may still go on.
    """
    end = min(
        view[size - 1] for view, size, p, k in zip(views, sizes, position, thresholds, strict=True) if 0 < size - p < k
    )
    return [_search(view, end, p, size, k) for view, size, p, k in zip(views, sizes, position, thresholds, strict=True)]


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
    return ((counts == 0) | (counts >= np.asarray(thresholds))).all(axis=1)


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
