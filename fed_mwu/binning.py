"""One center's values become a K-anonymous table (paper, "Federated binning", Algorithms 1-3; METHODS 2 and 3).

Bins close, from small to large values, as soon as one group has K values and every other group has 0 or at least K.
With two groups of 300 values and K = 10 that gives some 20 bins. The center gives away the table and nothing else.
Not promised: that K values in a bin differ from each other.
"""

import operator
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fed_mwu.bin_search import find_bins, raised_thresholds
from fed_mwu.bins import Bins, unite
from fed_mwu.errors import BelowK, NoValues
from fed_mwu.limits import DEFAULT_KEY, OPEN, Ends, interior_limits
from fed_mwu.table import Table
from fed_mwu.transit import check_private
from fed_mwu.values import real_values

__all__ = [
    "DEFAULT_MAX_BINS",
    "bin_center",
    "bin_sorted",
    "check_settings",
    "check_sizes",
    "extremes",
    "sorted_groups",
]

DEFAULT_MAX_BINS = 1000


def bin_center(
    groups: Sequence[ArrayLike],
    *,
    k: int,
    ends: Ends = OPEN,
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
    array([[4., 0.],
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
        raise NoValues("no group has any value, so there is nothing to bin")
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
    table = Table(limits[keep], bins.cut(np.flatnonzero(keep[1:])).table_counts())
    check_private(table, sizes, k)
    return table


def _cap(bins: Bins, max_bins: int) -> Bins:
    """Unite bins until there are at most `max_bins`: a small group that keeps its own K can lead to more."""
    if not max_bins or bins.cumulative.shape[0] <= max_bins:
        return bins
    totals = bins.counts().sum(axis=1, keepdims=True)
    return bins.cut(unite(totals, [-(-int(totals.sum()) // max_bins)]))
