"""Checks of a table in transit: what a center makes sure of before it sends one, and a server before it uses one."""

from collections.abc import Sequence

import numpy as np

from fed_mwu.errors import NotPrivate
from fed_mwu.table import RELATIVE_TOLERANCE, Table

__all__ = ["check_joined", "check_private"]


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


def check_joined(before: Table, after: Table, sizes: Sequence[float]) -> None:
    """Check a joined table against the one it started from (METHODS 10, last points).

    Parameters
    ----------
    before, after : Table
    sizes : sequence of float, shape (G,)
        What the center announced to add.

    Raises
    ------
    NotPrivate
        If an old limit is gone, a group shrank somewhere, or the growth is not `sizes`.
    """
    if before.n_groups != after.n_groups:
        raise NotPrivate("the number of groups changed")
    inner = before.limits[1:-1]
    position = np.searchsorted(after.limits, inner)
    if not np.array_equal(after.limits[np.minimum(position, after.n_bins)], inner):
        raise NotPrivate("a limit of the table is gone")
    if after.limits[0] > before.limits[0] or after.limits[-1] < before.limits[-1]:
        raise NotPrivate("an end of the table moved inwards")
    # reduceat wants the first bin of each old bin; interior limit i starts bin i.
    grown = np.add.reduceat(after.counts, np.append(0, position), axis=1) - before.counts
    slack = RELATIVE_TOLERANCE * max(1.0, float(after.counts.sum()))
    if grown.min() < -slack:
        raise NotPrivate("a count of the table shrank")
    if np.abs(grown.sum(axis=1) - np.asarray(sizes, dtype=np.float64)).max() > slack:
        raise NotPrivate("the counts did not grow by the announced sizes")
