"""Quantiles as rows of a table and as plain numbers, for `fed_mwu.report`."""

import math
from typing import Any

from fed_mwu.quantiles import QuantileEstimates

__all__ = ["HEADER", "plain", "quantile_dict", "quantile_rows"]

HEADER = ["group", "p", "estimator", "quantile", "95% interval", "between limits"]


def quantile_rows(estimates: QuantileEstimates) -> list[list[str]]:
    """Return a row of text for each probability."""
    rows = []
    for i, p in enumerate(estimates.probabilities.tolist()):
        between = ""
        if estimates.bracket is not None:
            between = " to ".join(f"{limit:.5g}" for limit in estimates.bracket[i].tolist())
        interval = f"{estimates.low[i]:.5g} to {estimates.high[i]:.5g}"
        rows.append([estimates.group, f"{p:g}", estimates.method, f"{estimates.estimates[i]:.5g}", interval, between])
    return rows


def quantile_dict(estimates: QuantileEstimates) -> dict[str, Any]:
    """Return plain lists; infinite numbers become the text "Infinity" or "-Infinity"."""
    found: dict[str, Any] = {"group": estimates.group, "estimator": estimates.method}
    for name in ("probabilities", "estimates", "low", "high"):
        found[name] = plain(getattr(estimates, name).tolist())
    found["bracket"] = None if estimates.bracket is None else [plain(pair) for pair in estimates.bracket.tolist()]
    return found


def plain(numbers: list[float]) -> list[float | str]:
    """Write infinite numbers as text: JSON has none."""
    return [x if math.isfinite(x) else ("Infinity" if x > 0 else "-Infinity") for x in numbers]
