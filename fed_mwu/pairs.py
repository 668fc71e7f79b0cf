"""Count pairs and ties of two samples, exactly and at the speed of one sort.

Sorting two samples together tells everything about their pairs once each value remembers which sample it came from.
Here that memory is the lowest bit of the number itself: a float64 has one to spare, because scaled below 1 its
exponent does not need the highest bit. One in-place sort of 2 million numbers then takes less time than sorting the
samples apart and searching one in the other. Values that this cannot carry (infinite ones, or a range of more than
10^300) take the slow way.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["PairCounts", "count_pairs", "largest_magnitude"]

Values = NDArray[np.float64] | NDArray[np.int64]

_BLOCK = 32768  # numbers; what is worked on at a time stays in the cache
_ONES_AND_RAMP = np.stack((np.ones(_BLOCK), np.arange(_BLOCK, dtype=np.float64)))
_MAGNITUDE = 2**63 - 1  # all bits but the sign
_SMALLEST_NORMAL = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True, slots=True)
class PairCounts:
    """What the rank tests need to know of two samples, in exact integers of any size.

    Parameters
    ----------
    u : int
        Pairs with y above x minus pairs with y below x.
    cubes : int
        Sum of ``t^3`` over the distinct values, ``t`` observations each.
    """

    u: int
    cubes: int


def largest_magnitude(values: Values) -> float:
    """Return the largest absolute value; NaN if any value is NaN."""
    return max(float(values.max()), -float(values.min()))


def count_pairs(x: Values, y: Values, largest: float) -> PairCounts:
    """Compare each value of `y` with each of `x`.

    Parameters
    ----------
    x, y : ndarray of float64 or int64, not empty
        Without NaN; they are not changed.
    largest : float
        The `largest_magnitude` of both, which a caller has at hand from looking for NaN.

    Returns
    -------
    PairCounts
    """
    if x.dtype == y.dtype == np.int64 and largest >= 2.0**53:  # float64 may round these
        return _count_searching(x, y)
    return _count_floats(x.astype(np.float64, copy=False), y.astype(np.float64, copy=False), largest)


def _count_floats(x: NDArray[np.float64], y: NDArray[np.float64], largest: float) -> PairCounts:
    if np.isfinite(largest):
        # Below 1 already: no scaling, which keeps the smallest numbers exact.
        scale = 2.0 ** -int(np.frexp(largest)[1]) if largest >= 1.0 else 1.0
        keys = _sorted_keys(x, y, scale)
        if scale == 1.0 or _exact(keys, x, y):
            return _count_sorted(keys, x.size, y.size)
    return _count_searching(x, y)


def _sorted_keys(x: NDArray[np.float64], y: NDArray[np.float64], scale: float) -> NDArray[np.float64]:
    """Return all values in ascending order, as floats whose lowest bit is 1 for those of `y`."""
    keys = np.empty(x.size + y.size)
    _mark(x, 0, keys[: x.size], scale)
    _mark(y, 1, keys[x.size :], scale)
    keys.sort()
    # Zeros may have come with either sign: they are one value, x first like all that is not negative.
    zeros = keys[np.searchsorted(keys, -5e-324) : np.searchsorted(keys, 5e-324, side="right")].view(np.int64)
    zeros[:] = np.sort(zeros & 1)
    return keys


def _mark(values: NDArray[np.float64], mark: int, keys: NDArray[np.float64], scale: float) -> None:
    """Write ``values * scale`` into `keys`, sign kept, the other bits moved up by one, and `mark` in the lowest bit."""
    scratch = np.empty(min(_BLOCK, values.size), dtype=np.int64)
    for start in range(0, values.size, _BLOCK):
        key = keys[start : start + _BLOCK]
        np.multiply(values[start : start + _BLOCK], scale, out=key)
        bits = key.view(np.int64)
        # Adding the magnitude moves it up by one and leaves the sign alone, since its highest bit is 0.
        magnitude = np.bitwise_and(bits, _MAGNITUDE, out=scratch[: key.size])
        np.add(bits, magnitude, out=bits)
        if mark:
            np.bitwise_or(bits, mark, out=bits)


def _exact(keys: NDArray[np.float64], x: NDArray[np.float64], y: NDArray[np.float64]) -> bool:
    """Tell whether scaling has rounded no value: none is below the normal numbers, and zeros were zeros before."""
    lowest = np.array([_SMALLEST_NORMAL]).view(np.int64) << 1
    edge = float(lowest.view(np.float64)[0])
    zeros = np.searchsorted(keys, 5e-324, side="right") - np.searchsorted(keys, 0.0)
    tiny = np.searchsorted(keys, edge) - np.searchsorted(keys, -edge, side="right") - zeros
    return not tiny and (not zeros or int(zeros) == x.size + y.size - np.count_nonzero(x) - np.count_nonzero(y))


def _count_sorted(keys: NDArray[np.float64], n: int, m: int) -> PairCounts:
    bits = keys.view(np.int64)
    positions = _positions_if_untied(bits)
    if positions is None:
        return _count_runs(bits, n, m)
    before = positions - m * (m - 1) // 2  # of the positions of y's values, those of y itself
    return PairCounts(u=2 * before - n * m, cubes=n + m)


def _positions_if_untied(bits: NDArray[np.int64]) -> int | None:
    """Return the sum of the positions of all values of y, or None as soon as two neighbours are tied."""
    positions = 0
    scratch = np.empty(min(_BLOCK, bits.size), dtype=np.int64)
    of_y = np.empty(scratch.size)
    for start in range(0, bits.size, _BLOCK):
        block = bits[start : start + _BLOCK + 1]
        if block.size > 1:
            change = np.bitwise_xor(block[1:], block[:-1], out=scratch[: block.size - 1])
            if change.view(np.uint64).min() < 2:
                return None
        block = block[:_BLOCK]
        marks = of_y[: block.size]
        marks[:] = np.bitwise_and(block, 1, out=scratch[: block.size])
        # Within a block the sums are far below 2**53 and exact; the total is a Python integer.
        how_many, sum_within = (_ONES_AND_RAMP[:, : block.size] @ marks).tolist()
        positions += start * int(how_many) + int(sum_within)
    return positions


def _count_runs(bits: NDArray[np.int64], n: int, m: int) -> PairCounts:
    """Count by runs of equal keys: a value tied between the samples is two runs that differ in the lowest bit."""
    edges = _run_edges(bits)
    first, end = edges[:-1], edges[1:]
    values = bits[first]
    of_y = values & 1
    # Twice the positions of y's values, run by run; below N^2 in all, which int64 holds up to N = 2.7e9 values.
    twice = first + end
    twice -= 1
    twice *= end - first
    twice *= of_y
    u = int(twice.sum()) - m * (m - 1) - n * m  # of the positions, those among y itself are taken off
    is_switch = (values[1:] ^ values[:-1]) == 1
    switch = np.flatnonzero(is_switch)  # here a run of one sample is followed by its tie in the other
    pairs = (end[switch] - first[switch]) * (end[switch + 1] - first[switch + 1])
    # The positions took a tie for x below y where x comes first (numbers not negative), else for y below x.
    u += int((pairs * (2 * of_y[switch] - 1)).sum())
    groups = edges[np.flatnonzero(np.concatenate(([True], ~is_switch, [True])))]
    return PairCounts(u=u, cubes=_sum_of_cubes(groups[1:] - groups[:-1]))


def _run_edges(bits: NDArray[np.int64]) -> NDArray[np.intp]:
    """Return where each run of equal keys starts, and the end of the last."""
    edges = np.empty(bits.size + 1, dtype=np.bool_)
    edges[0] = edges[-1] = True
    for start in range(1, bits.size, _BLOCK):
        end = min(start + _BLOCK, bits.size)
        np.not_equal(bits[start:end], bits[start - 1 : end - 1], out=edges[start:end])
    return np.flatnonzero(edges)


def _count_searching(x: Values, y: Values) -> PairCounts:
    """Do the same by searching, for whatever the keys cannot carry."""
    ordered: NDArray[Any] = np.sort(x)
    wanted: NDArray[Any] = np.sort(y)  # in ascending order the searches stay in the cache, several times as fast
    below = int(np.searchsorted(ordered, wanted, side="left").sum())
    not_above = int(np.searchsorted(ordered, wanted, side="right").sum())
    _, lengths = np.unique(np.concatenate((x, y)), return_counts=True)
    return PairCounts(u=below + not_above - x.size * y.size, cubes=_sum_of_cubes(lengths))


def _sum_of_cubes(lengths: NDArray[np.int64] | NDArray[np.intp]) -> int:
    """Sum of cubes in Python integers, which do not overflow; few lengths differ from each other."""
    longest = int(lengths.max())
    if longest <= lengths.size:  # counting is faster than sorting, and takes no more room than the lengths do
        how_many = np.bincount(lengths)
        different = np.flatnonzero(how_many)
        how_many = how_many[different]
    else:
        different, how_many = np.unique(lengths, return_counts=True)
    return sum(t**3 * c for t, c in zip(different.tolist(), how_many.tolist(), strict=True))
