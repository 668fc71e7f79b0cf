"""Tables of different lengths side by side in three flat arrays.

"offsets" (V + 1) cuts "limits" into variables; an empty piece is a variable without a table. "counts" holds, table by
table, its G times B counts. 1,000 tables of 20 bins make three arrays, not 2,000.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fed_mwu.errors import InvalidReply
from fed_mwu.table import Table

__all__ = ["pack_tables", "unpack_tables"]

MOST_BINS = 1_000_000
MAX_SIZE = 2.0**53  # beyond it float64 no longer counts one by one


def pack_tables(variables: Sequence[str], tables: Mapping[str, Table]) -> dict[str, NDArray[Any]]:
    """Return the arrays "offsets", "limits" and "counts" of the tables, in the order of `variables`."""
    present = [tables.get(variable) for variable in variables]
    lengths = [0 if table is None else table.limits.size for table in present]
    found = [table for table in present if table is not None]
    none = [np.zeros(0)]
    return {
        "offsets": np.concatenate(([0], np.cumsum(lengths, dtype=np.int64))).astype(np.int64),
        "limits": np.concatenate(none + [table.limits for table in found]),
        "counts": np.concatenate(none + [table.counts.ravel() for table in found]),
    }


def unpack_tables(
    offsets: NDArray[np.int64],
    limits: NDArray[np.float64],
    counts: NDArray[np.float64],
    variables: Sequence[str],
    n_groups: int,
) -> dict[str, Table]:
    """Return the tables by variable; what comes from outside is checked.

    Raises
    ------
    InvalidReply
        If the arrays do not fit each other or a piece is no table.
    """
    lengths = np.diff(offsets)
    if (lengths > MOST_BINS).any():
        raise InvalidReply(f"a table has more than {MOST_BINS} bins")
    bins = np.maximum(lengths - 1, 0)
    if offsets[0] != 0 or (lengths < 0).any() or (lengths == 1).any() or offsets[-1] != limits.size:
        raise InvalidReply("the offsets of the tables do not cut their limits")
    if counts.size != n_groups * int(bins.sum()):
        raise InvalidReply("the counts of the tables do not fit their limits")
    if not counts.sum() <= MAX_SIZE:
        raise InvalidReply("the counts of the tables are not finite or too large")
    tables = {}
    starts = offsets.tolist()
    at = 0
    for variable, start, stop in zip(variables, starts[:-1], starts[1:], strict=True):
        if stop > start:
            n_bins = stop - start - 1
            part = counts[at : at + n_groups * n_bins].reshape(n_groups, n_bins)
            at += n_groups * n_bins
            try:
                tables[variable] = Table(limits[start:stop], part)
            except ValueError as error:
                raise InvalidReply(f"a table is not one: {error}") from None
    return tables
