"""The federated Mann-Whitney tests, from what centers release (paper, "Federated Mann-Whitney"; METHODS 6).

Direction everywhere: "greater" and a superiority above 1/2 mean that Y, the second group, tends to be larger.

Not promised: exact small-sample p-values (all are normal or chi-square approximations, without continuity
correction), and a direction from Fisher's method. Cost: one round for the sum, weighted and Fisher tests, L rounds
for the table of L centers.

>>> from fed_mwu.ranks import center_statistic
>>> centers = [center_statistic([1, 2, 4], [3, 5, 6]), center_statistic([2, 3, 7], [4, 8, 9])]
>>> result = weighted_test(centers)
>>> round(result.statistic, 4), round(result.pvalue, 4), round(result.superiority, 4)
(2.1602, 0.0308, 0.8889)
"""

import math
from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gammaln, logsumexp

from fed_mwu.ranks import Alternative, CenterStatistic, center_statistic, log_normal_pvalue
from fed_mwu.results import RankTestResult
from fed_mwu.table import Table

__all__ = [
    "WEIGHTS",
    "Weights",
    "combined_test",
    "fisher_test",
    "sum_test",
    "table_statistic",
    "table_test",
    "weighted_test",
]

Weights = Literal["optimal", "van-elteren"]
WEIGHTS = ("optimal", "van-elteren")


def sum_test(centers: Sequence[CenterStatistic], *, alternative: Alternative = "two-sided") -> RankTestResult:
    """Test by the sum of the centers' statistics, ``sum U_l / sqrt(sum V_l)``.

    Parameters
    ----------
    centers : sequence of CenterStatistic
        One for each center. Those that lack a group carry no information and are left out.
    alternative : {"two-sided", "greater", "less"}
        "greater": Y tends to be larger.

    Returns
    -------
    RankTestResult

    Raises
    ------
    ValueError
        If no center has both groups, or `alternative` is unknown.
    """
    used = _with_both_groups(centers)
    return _normal_test(used, [1.0] * len(used), alternative, "sum")


def weighted_test(
    centers: Sequence[CenterStatistic],
    *,
    alternative: Alternative = "two-sided",
    weights: Weights = "optimal",
) -> RankTestResult:
    """Test by a weighted sum of the centers' statistics.

    Parameters
    ----------
    centers : sequence of CenterStatistic
        One for each center. Those that lack a group, or whose values are all equal, carry no information.
    alternative : {"two-sided", "greater", "less"}
    weights : {"optimal", "van-elteren"}
        "optimal": ``sum w_l Z_l / sqrt(sum w_l^2)`` with ``w_l = n_l m_l / sqrt(V_l)``, most powerful when
        ``P(Y > X) - P(Y < X)`` is the same in all centers (paper, appendix). "van-elteren": weights ``1 / (N_l + 1)``
        of ``U_l`` (van Elteren 1960), what SAS prints as CMH2 with SCORES=MODRIDIT. They are one where there are no
        ties.

    Returns
    -------
    RankTestResult

    Raises
    ------
    ValueError
        If no center has both groups, or `alternative` or `weights` is unknown.
    """
    if weights not in WEIGHTS:
        raise ValueError(f"weights must be one of {WEIGHTS}, got {weights!r}")
    used = _with_both_groups(centers)
    if weights == "optimal":
        # w_l Z_l = (n_l m_l / V_l) U_l; no variance, no weight.
        of_u = [c.n * c.m / c.variance if c.variance else 0.0 for c in used]
    else:
        of_u = [1.0 / (c.n + c.m + 1.0) for c in used]
    return _normal_test(used, of_u, alternative, f"weighted ({weights})")


def fisher_test(centers: Sequence[CenterStatistic], *, alternative: Alternative = "two-sided") -> RankTestResult:
    """Combine the centers' p-values by Fisher's method: ``-2 sum log p_l`` is chi-square with 2L degrees of freedom.

    Parameters
    ----------
    centers : sequence of CenterStatistic
        One for each center. Those that lack a group, or whose values are all equal, are left out and take no degrees of
        freedom.
    alternative : {"two-sided", "greater", "less"}
        "two-sided" combines two-sided p-values, which is significant also when centers point in opposite directions
        (the result then says so). The others combine the p-values of one common direction.

    Returns
    -------
    RankTestResult
        Its superiority and interval are those of the sum test: Fisher's method itself has no effect size.

    Raises
    ------
    ValueError
        If no center has both groups, or `alternative` is unknown.
    """
    used = _with_both_groups(centers)
    logs = [c.log_pvalue(alternative) for c in used if c.variance > 0.0]
    statistic = -2.0 * math.fsum(logs)
    notes = [f"{len(logs)} p-values, {2 * len(logs)} degrees of freedom"]
    signs = {math.copysign(1.0, c.u) for c in used if c.u != 0.0}
    if alternative == "two-sided" and len(signs) == 2:
        notes.append(
            "centers point in opposite directions; Fisher's two-sided combination says nothing about direction"
        )
    return RankTestResult(
        statistic=statistic,
        log_pvalue=_log_chi2_sf(statistic, len(logs)),
        alternative=alternative,
        method="fisher",
        strata=used,
        weights=(1.0,) * len(used),
        notes=tuple(notes),
    )


def table_test(table: Table, *, alternative: Alternative = "two-sided") -> RankTestResult:
    """Test on a table: observations in one bin are tied (paper, "federated table"; METHODS 6).

    Parameters
    ----------
    table : Table
        Two groups: row 0 is X, row 1 is Y.
    alternative : {"two-sided", "greater", "less"}

    Returns
    -------
    RankTestResult

    Raises
    ------
    ValueError
        If the table has not two groups, or one is empty, or `alternative` is unknown.
    """
    return _normal_test(_with_both_groups([table_statistic(table)]), [1.0], alternative, "table")


def combined_test(x: ArrayLike, y: ArrayLike, *, alternative: Alternative = "two-sided") -> RankTestResult:
    """Run the ordinary Mann-Whitney test on pooled data: a benchmark, never available in a federation.

    Parameters
    ----------
    x, y : array_like of shape (n,) and (m,)
        NaN is left out; infinite values are ranked.
    alternative : {"two-sided", "greater", "less"}
        "greater": `y` tends to be larger.

    Returns
    -------
    RankTestResult

    Raises
    ------
    ValueError, TypeError
        If a group has no value, data are no numbers, or `alternative` is unknown.
    """
    return _normal_test(_with_both_groups([center_statistic(x, y)]), [1.0], alternative, "combined")


def table_statistic(table: Table) -> CenterStatistic:
    """Return ``U_fed = sum_i fy_i (sum_{j<i} fx_j - sum_{j>i} fx_j)`` and its variance with ``t_r = fx_r + fy_r``.

    Raises
    ------
    ValueError
        If the table has not exactly two groups.
    """
    if table.n_groups != 2:
        raise ValueError(f"table must have 2 groups, X and Y, got {table.n_groups}")
    x, y = table.counts
    n, m = float(x.sum()), float(y.sum())
    below = np.cumsum(x) - x
    above = np.cumsum(x[::-1])[::-1] - x
    u = float(np.sum(y * (below - above)))
    tied = x + y
    total = n + m
    # N^3 - sum t^3 as a sum of positive terms: the difference of the cubes cancels when nearly all is tied.
    others = np.cumsum(tied) - tied + np.cumsum(tied[::-1])[::-1] - tied
    spread = float(np.sum(tied * others * (total + tied)))
    variance = n * m * spread / (3.0 * total * (total - 1.0)) if total > 1.0 else 0.0
    return CenterStatistic(n=n, m=m, u=u, variance=variance)


def _with_both_groups(centers: Sequence[CenterStatistic]) -> tuple[CenterStatistic, ...]:
    used = tuple(c for c in centers if c.n > 0 and c.m > 0)
    if not used:
        raise ValueError("a Mann-Whitney test needs values in both groups, and there is no center that has them")
    return used


def _normal_test(
    used: tuple[CenterStatistic, ...], of_u: Sequence[float], alternative: Alternative, method: str
) -> RankTestResult:
    """Return the test of ``sum w U / sqrt(sum w^2 V)``; without any variance all values are tied and p is 1."""
    variance = math.fsum(w * w * c.variance for w, c in zip(of_u, used, strict=True))
    z = math.fsum(w * c.u for w, c in zip(of_u, used, strict=True)) / math.sqrt(variance) if variance else 0.0
    log_pvalue = log_normal_pvalue(z, alternative)
    return RankTestResult(
        statistic=z,
        log_pvalue=log_pvalue if variance else 0.0,
        alternative=alternative,
        method=method,
        strata=used,
        weights=tuple(of_u),
        notes=() if variance else ("all values are tied: there is no information, p is 1",),
    )


def _log_chi2_sf(statistic: float, half_degrees: int) -> float:
    """Return the log of the chi-square tail for an even number of degrees of freedom.

    With ``h = statistic / 2`` the tail is ``exp(-h) * sum_{i < half_degrees} h^i / i!``: a closed form that stays exact
    where the tail itself is below the smallest number.
    """
    if half_degrees == 0 or statistic <= 0.0:
        return 0.0
    h = statistic / 2.0
    i = np.arange(half_degrees)
    return min(0.0, float(logsumexp(i * math.log(h) - gammaln(i + 1.0))) - h)
