"""Quantiles from tables (paper, "Quantile estimation"; METHODS 8): four estimators over what centers have released.

They cost no round beyond those of the table. Not promised: anything about the tails beyond the outermost interior
limits, where "yeo-johnson" and "interpolation" extrapolate a model and "step" and "linear" have only the ends.

>>> from fed_mwu.table import Table
>>> table_quantiles(Table([0, 10, 20, 40], [[20, 20, 40]]), [0.25, 0.5, 0.75], method="linear")
array([10., 20., 30.])
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

from fed_mwu.table import Table
from fed_mwu.yeo_johnson_table import TableFit, fit_table

__all__ = [
    "QUANTILE_METHODS",
    "QuantileEstimates",
    "QuantileMethod",
    "check_probabilities",
    "estimate_from_table",
    "estimate_groups",
    "table_quantiles",
]

QuantileMethod = Literal["yeo-johnson", "interpolation", "linear", "step"]
QUANTILE_METHODS: tuple[QuantileMethod, ...] = ("yeo-johnson", "interpolation", "linear", "step")

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class QuantileEstimates:
    """Quantiles of one variable in one group by one estimator.

    Parameters
    ----------
    group : str
        Label of the group.
    method : str
        Name of the estimator.
    probabilities, estimates : ndarray of shape (P,)
    low, high : ndarray of shape (P,)
        95% confidence limits.
    bracket : ndarray of shape (P, 2), or None
        For tables, the limits between which the table's own quantile lies; infinite where an end is.
    """

    group: str
    method: str
    probabilities: Floats
    estimates: Floats
    low: Floats
    high: Floats
    bracket: Floats | None = None


def check_probabilities(probabilities: ArrayLike) -> Floats:
    """Return probabilities as an array.

    Raises
    ------
    ValueError
        If there is none, or one is not between 0 and 1.
    """
    p = np.atleast_1d(np.asarray(probabilities, dtype=np.float64))
    if p.ndim != 1 or not p.size or not ((p >= 0.0) & (p <= 1.0)).all():
        raise ValueError(f"probabilities must be one or several numbers between 0 and 1, got {probabilities!r}")
    return p


def table_quantiles(
    tables: Table | Sequence[Table], probabilities: ArrayLike, *, method: QuantileMethod = "yeo-johnson", group: int = 0
) -> Floats:
    """Estimate quantiles of a group from a table, or from several tables side by side.

    Parameters
    ----------
    tables : Table or sequence of Table
        Several tables are of different patients; they are pooled.
    probabilities : float or array_like of shape (P,)
        Between 0 and 1.
    method : {"yeo-johnson", "interpolation", "linear", "step"}
        "yeo-johnson": maximum grouped likelihood. "interpolation": between limits, linear in the normal score and the
        Yeo-Johnson scale of that fit. "linear": linear in the distribution function; needs finite ends where a quantile
        falls into an end bin. "step": the smallest limit at which the distribution function reaches p.
    group : int
        Row of the counts.

    Returns
    -------
    ndarray
        Of the shape of `probabilities`. Never decreases with the probability. Infinite where an open end or
        the end of the fitted distribution is meant.

    Raises
    ------
    ValueError
        If `method` is unknown, a probability is not between 0 and 1, the group is empty, or the tables hold too
        little for the method.
    """
    found = [tables] if isinstance(tables, Table) else list(tables)
    p = check_probabilities(probabilities)
    if method not in QUANTILE_METHODS:
        raise ValueError(f"method must be one of {QUANTILE_METHODS}, got {method!r}")
    if not found:
        raise ValueError("tables must hold at least one table, got none")
    found = [table for table in found if table.counts[group].any()]
    if not found:
        raise ValueError(f"group {group} has no values in these tables, so it has no quantiles")
    return _estimate(found, p, method, group).reshape(np.shape(probabilities))


def _estimate(tables: Sequence[Table], p: Floats, method: QuantileMethod, group: int) -> Floats:
    if method == "yeo-johnson":
        return _fit(tuple(tables), group).quantiles(p)
    if method == "interpolation":
        return _interpolate(tables, p, group)
    limits, share = _distribution(tables, group)
    return _step(limits, share, p) if method == "step" else _linear(limits, share, p)


@lru_cache(maxsize=64)
def _fit(tables: tuple[Table, ...], group: int) -> TableFit:
    """Fit once what several estimators and their confidence limits use."""
    return fit_table(tables, group)


def estimate_from_table(
    table: Table, probabilities: ArrayLike, *, method: QuantileMethod, group: int, label: str
) -> QuantileEstimates:
    """Estimate quantiles with the limits that bracket them and 95% confidence limits.

    The confidence limits of "yeo-johnson" are the fit's (delta method). Those of the others are Woodruff's: the
    limits of the table around ``p -+ 1.96 sqrt(p (1 - p) / n)``, which cover at least as often as 95% (Woodruff
    1952).

    Raises
    ------
    ValueError
        As `table_quantiles`.
    """
    p = check_probabilities(probabilities)
    estimates = table_quantiles(table, p, method=method, group=group)
    limits, share = _distribution([table], group)
    bracket = np.column_stack((_below(limits, share, p), _step(limits, share, p)))
    if method == "yeo-johnson":
        low, high = _fit((table,), group).interval(p, 0.95)
    else:
        half = ndtri(0.975) * np.sqrt(p * (1.0 - p) / float(table.counts[group].sum()))
        low = _below(limits, share, np.maximum(p - half, 0.0))
        high = _step(limits, share, np.minimum(p + half, 1.0))
    return QuantileEstimates(label, method, p, estimates, low, high, bracket)


def estimate_groups(
    table: Table, probabilities: Floats, methods: Sequence[QuantileMethod], labels: Sequence[str]
) -> tuple[tuple[QuantileEstimates, ...], tuple[str, ...]]:
    """Estimate quantiles of each group by each method; what has no answer is told in words instead."""
    found, notes = [], []
    for group, label in enumerate(labels):
        for method in methods:
            try:
                found.append(estimate_from_table(table, probabilities, method=method, group=group, label=label))
            except ValueError as error:
                notes.append(f"{method}, {label}: {error}")
    return tuple(found), tuple(notes)


def _distribution(tables: Sequence[Table], group: int) -> tuple[Floats, Floats]:
    """Return limits and the share of values at or below each.

    Several tables are pooled on the union of their limits, values spread evenly over finite bins. In an end bin that is
    open nothing is known of the place: its values are taken to lie at the very end.
    """
    if len(tables) == 1:
        return tables[0].limits, tables[0].cdf(group)
    limits = np.unique(np.concatenate([table.limits for table in tables]))
    total = np.zeros(limits.size)
    for table in tables:
        cumulative = np.concatenate(([0.0], np.cumsum(table.counts[group])))
        finite = np.isfinite(table.limits)
        inside = np.interp(limits, table.limits[finite], cumulative[finite]) if finite.any() else cumulative[:1]
        total += np.where(limits >= table.limits[-1], cumulative[-1], np.where(limits > table.limits[0], inside, 0.0))
    return limits, total / total[-1]


def _step(limits: Floats, share: Floats, p: Floats) -> Floats:
    # Shares come from sums of fractions: what lacks a rounding error of p has reached it.
    reached: Floats = limits[np.minimum(np.searchsorted(share, p * (1.0 - 1e-12)), limits.size - 1)]
    return reached


def _below(limits: Floats, share: Floats, p: Floats) -> Floats:
    """Return the largest limit at which the share is still at most p, counting from the last of equal shares."""
    below: Floats = limits[np.searchsorted(share, p, side="right").clip(1) - 1]
    return below


def _linear(limits: Floats, share: Floats, p: Floats) -> Floats:
    # Bin of each quantile: the first whose upper share reaches p; p = 0 is the lower limit of the first bin with
    # values.
    upper = np.searchsorted(share, p * (1.0 - 1e-12)).clip(1, limits.size - 1)
    first = int(np.flatnonzero(share > 0.0)[0])
    upper = np.maximum(upper, first)
    low, high = limits[upper - 1], limits[upper]
    if not (np.isfinite(low) & np.isfinite(high)).all():
        raise ValueError(
            "linear interpolation needs finite ends where a quantile falls into an end bin: ask the table with"
            " natural or buffer ends, or use another method"
        )
    part: Floats = (p - share[upper - 1]) / (share[upper] - share[upper - 1])
    found: Floats = low + np.clip(part, 0.0, 1.0) * (high - low)
    return found


def _interpolate(tables: Sequence[Table], p: Floats, group: int) -> Floats:
    fit = _fit(tuple(tables), group)
    limits, share = _distribution(tables, group)
    inside = np.isfinite(limits) & (share > 0.0) & (share < 1.0)
    scores, first = np.unique(ndtri(share[inside]), return_index=True)
    places = fit.scale_values(limits[inside][first])
    if scores.size == 1:  # one limit and the fit's own slope
        slope_low = slope_high = np.array(1.0 / fit.slope)
    else:
        slopes = np.diff(places) / np.diff(scores)
        slope_low, slope_high = slopes[0], slopes[-1]
    z = ndtri(p)
    inner = np.interp(z, scores, places)
    below, above = np.minimum(z - scores[0], 0.0), np.maximum(z - scores[-1], 0.0)
    outer = np.zeros_like(z)
    for distance, slope in ((below, slope_low), (above, slope_high)):
        if slope > 0.0:  # where the scale has ended, its end is all there is
            outer += distance * slope
    return fit.scale_inverse(inner + outer)
