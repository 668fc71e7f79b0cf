"""A center joins a table (paper, "Adding a center", Algorithms 4-6; METHODS 4).

The new table is the old counts, divided where the new center splits a bin, plus the center's own counts. What anyone
learns about the center is its counts over *united* bins, each 0 or at least K; within a united bin they are spread in
proportion to the old table, which says nothing about the center. Joining costs one round and sends the table once in
each direction.

Where METHODS 4 would leave a share of less than K in the table (only when a group is missing in a bin on one of the two
sides), the split is not made, or the share is given to fewer bins: so every table that leaves a center is private in
each cell, which a reader can check without knowing how it came about.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fed_mwu.bin_search import find_bins, raised_thresholds
from fed_mwu.binning import DEFAULT_MAX_BINS, check_settings, check_sizes, extremes, sorted_groups
from fed_mwu.bins import Bins, unite
from fed_mwu.limits import DEFAULT_KEY, OPEN, Ends, interior_limits
from fed_mwu.table import RELATIVE_TOLERANCE, Table, are_private
from fed_mwu.transit import check_private

__all__ = ["Joined", "join_center", "join_sorted"]


@dataclass(frozen=True, slots=True)
class Joined:
    """A table that a center has joined, and what the center itself gave away.

    Parameters
    ----------
    table : Table
        The new table.
    contribution : Table
        The center's own counts over the united bins: what a reader of the old and the new table can find out.
    """

    table: Table
    contribution: Table


def join_center(
    table: Table,
    groups: Sequence[ArrayLike],
    *,
    k: int,
    ends: Ends = OPEN,
    key: bytes = DEFAULT_KEY,
    max_bins: int = DEFAULT_MAX_BINS,
) -> Table:
    """Add the values of one center to a table.

    Parameters
    ----------
    table : Table
        The table so far; it is not changed.
    groups : sequence of G array_like, each of shape (n_g,)
        The center's values, groups in the order of the table's rows. NaN is left out.
    k, ends, key, max_bins
        As in `bin_center`.

    Returns
    -------
    Table
        Its sizes are those of `table` plus the center's; private if `table` was.

    Raises
    ------
    BelowK
        A `ValueError`: a group has some values, but fewer than `k`.
    ValueError, TypeError
        If groups and table do not fit, `ends` cannot hold the data, or an argument is not what it should be.
    """
    check_settings(k, max_bins)
    return join_sorted(table, sorted_groups(groups), k=k, ends=ends, key=key, max_bins=max_bins).table


def join_sorted(
    table: Table, groups: list[NDArray[np.float64]], *, k: int, ends: Ends, key: bytes, max_bins: int
) -> Joined:
    """Do the work of `join_center` on sorted values; return the contribution too, for the checks before a release."""
    if len(groups) != table.n_groups:
        raise ValueError(f"groups must be as many as the table's, {table.n_groups}, got {len(groups)}")
    sizes = check_sizes(groups, k)
    smallest, largest = extremes(groups)
    ends.check(smallest, largest)
    splits = _find_splits(table, groups, key=key, thresholds=raised_thresholds(sizes, k, max_bins))
    limits, counts, bins, last = _settle(table, groups, splits, k)
    united = bins.cut(last)
    # The extreme *united* bin rather than the extreme bin: that one may hold a single value of this center, which a
    # buffer of width 0 would hand out.
    if smallest < limits[0]:
        limits[0] = ends.lower(united.values(groups, 0))
    if largest > limits[-1]:
        limits[-1] = ends.upper(united.values(groups, -1))
    contribution = Table(limits[np.append(0, last + 1)], united.table_counts())
    check_private(contribution, sizes, k)
    return Joined(Table(limits, counts), contribution)


@dataclass(frozen=True, slots=True)
class _Split:
    """New limits inside one bin of the table, and how many values of each group lie at or below each of them."""

    bin: int
    limits: NDArray[np.float64]
    cumulative: NDArray[np.int64]

    def cut(self, last: NDArray[np.intp]) -> "_Split":
        """Keep the new limits at the positions `last`; the bin's own end, the last position, is no new limit."""
        return _Split(self.bin, self.limits[last[:-1]], self.cumulative[last[:-1]])


def _positions(table: Table, groups: list[NDArray[np.float64]]) -> NDArray[np.int64]:
    """Return how many values of each group lie at or below the end of each bin, shape (B, G)."""
    inner = table.limits[1:-1]
    return np.column_stack([np.append(np.searchsorted(v, inner, side="right"), v.size) for v in groups])


def _find_splits(
    table: Table, groups: list[NDArray[np.float64]], *, key: bytes, thresholds: Sequence[int]
) -> list[_Split]:
    """METHODS 4, step 1: find the bins that the center's values can split, and the new limits in them."""
    cumulative = _positions(table, groups)
    own = Bins(cumulative).counts()
    enough = ((own == 0) | (own >= thresholds)).all(axis=1) & (own >= 2 * np.asarray(thresholds)).any(axis=1)
    splits = []
    for j in np.flatnonzero(enough).tolist():
        start = cumulative[j - 1] if j else np.zeros(len(groups), dtype=np.int64)
        inside = [v[a:b] for v, a, b in zip(groups, start, cumulative[j], strict=True)]
        bins = find_bins(inside, thresholds)
        left, right = bins.gaps(inside)
        limits = interior_limits(left, right, key=key)
        # The first bin is closed on the left: there may be no number between the table's end and the first gap.
        free = limits != table.limits[0]
        if free.any():
            splits.append(_Split(j, limits[free], bins.cumulative[:-1][free] + start))
    return splits


def _settle(
    table: Table, groups: list[NDArray[np.float64]], splits: list[_Split], k: int
) -> tuple[NDArray[np.float64], NDArray[np.float64], Bins, NDArray[np.intp]]:
    """Take back new limits until every count of the new table is private; return it with the center's united bins."""
    while True:
        limits, counts, bins = _divide(table, _positions(table, groups), splits)
        last = unite(bins.counts(), [k] * len(groups))
        counts = counts + _spread(counts, bins.counts().T, last, k)
        coarser = _coarsen(splits, counts, k)
        if len(coarser) == len(splits) and all(a is b for a, b in zip(coarser, splits, strict=True)):
            return limits, counts, bins, last
        splits = coarser


def _divide(
    table: Table, cumulative: NDArray[np.int64], splits: list[_Split]
) -> tuple[NDArray[np.float64], NDArray[np.float64], Bins]:
    """Return the limits with the new ones, the old counts divided among them, and the center's values there."""
    if not splits:
        return table.limits.copy(), table.counts, Bins(cumulative)
    at = np.repeat([split.bin for split in splits], [split.limits.size for split in splits])
    limits = np.insert(table.limits, at + 1, np.concatenate([split.limits for split in splits]))
    bins = Bins(np.insert(cumulative, at, np.concatenate([split.cumulative for split in splits]), axis=0))
    counts = np.insert(table.counts, at, 0.0, axis=1)
    own = bins.counts().T
    for split, start, stop in _ranges(splits):
        counts[:, start:stop] = _proportional(table.counts[:, split.bin], own[:, start:stop])
    return limits, counts, bins


def _ranges(splits: list[_Split]) -> list[tuple[_Split, int, int]]:
    """Return for each split the range of its bins in the new table."""
    result = []
    shift = 0
    for split in splits:
        start = split.bin + shift
        result.append((split, start, start + split.limits.size + 1))
        shift += split.limits.size
    return result


def _coarsen(splits: list[_Split], counts: NDArray[np.float64], k: int) -> list[_Split]:
    """Return the splits without the new limits beside counts that are not private."""
    coarser = []
    for split, start, stop in _ranges(splits):
        part = counts[:, start:stop]
        if are_private(part, k).all():
            coarser.append(split)
            continue
        last = unite(part.T, [k * (1.0 - RELATIVE_TOLERANCE)] * counts.shape[0])
        if last.size > 1:
            coarser.append(split.cut(last))
    return coarser


def _proportional(totals: NDArray[np.float64], weights: NDArray[np.float64] | NDArray[np.int64]) -> NDArray[np.float64]:
    """Divide each group's total in proportion to its own weights, or to the sum of all groups' where it has none.

    `totals` has shape (G,), `weights` and the result (G, B). Bins without any weight share alike.
    """
    chosen = np.where(weights.any(axis=1, keepdims=True), weights, _everyone(weights))
    shares: NDArray[np.float64] = totals[:, np.newaxis] * chosen / chosen.sum(axis=1, keepdims=True)
    return shares


def _everyone(weights: NDArray[np.float64] | NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the weights of all groups together, alike where there is none."""
    total: NDArray[np.float64] = weights.sum(axis=0).astype(np.float64)
    return total if total.any() else np.ones_like(total)


def _spread(table: NDArray[np.float64], own: NDArray[np.int64], last: NDArray[np.intp], k: int) -> NDArray[np.float64]:
    """METHODS 4, step 2: spread the center's counts in each united bin in proportion to the table, group by group."""
    result = own.astype(np.float64)
    start = 0
    for stop in (last + 1).tolist():
        if stop - start > 1:
            totals = result[:, start:stop].sum(axis=1)
            present = table[:, start:stop]
            result[:, start:stop] = _proportional(totals, present)
            for g in np.flatnonzero((totals > 0) & ~present.any(axis=1)):
                result[g, start:stop] = _concentrated(totals[g], _everyone(present), k)
        start = stop
    return result


def _concentrated(total: float, weights: NDArray[np.float64], k: int) -> NDArray[np.float64]:
    """Divide `total` in proportion to `weights` over as many of the largest of them as get at least `k` each."""
    order = np.argsort(-weights, kind="stable")
    shares = np.zeros_like(weights)
    for used in range(weights.size, 0, -1):
        chosen = order[:used]
        shares[chosen] = total * weights[chosen] / weights[chosen].sum()
        if used == 1 or are_private(shares[chosen], k).all():
            break
        shares[chosen] = 0.0
    return shares
