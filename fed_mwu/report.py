"""Results as text, HTML and JSON. Rounding happens here and nowhere else."""

import html
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from fed_mwu.quantile_report import HEADER, plain, quantile_dict, quantile_rows
from fed_mwu.ranks import Alternative
from fed_mwu.results import RankTestResult, format_pvalue

if TYPE_CHECKING:
    from fed_mwu.outcomes import FederatedResult, Participation
    from fed_mwu.table import Table

__all__ = ["as_dict", "as_html", "as_json", "as_text"]

Rows = list[list[str]]
_CENTER_NUMBERS = ("U", "superiority", "p-value")
_TEST_HEADER = ["test", "statistic", "p-value", "superiority", "95% interval"]


def as_text(results: Sequence["FederatedResult"]) -> str:
    """Write one or several results of the same question as text."""
    lines = []
    for title, tables, notes in _sections(results):
        lines += [title, ""]
        for rows in tables:
            lines += [*_aligned(rows), ""]
        lines += [*notes, ""] if notes else []
    return "\n".join([*lines, _cost(results)])


def as_html(results: Sequence["FederatedResult"]) -> str:
    """Write one or several results of the same question as HTML, without scripts or style sheets."""
    parts = []
    for title, tables, notes in _sections(results):
        parts.append(f"<h4>{html.escape(title)}</h4>")
        parts += [_html_table(rows) for rows in tables]
        parts += [f"<p>{html.escape(note)}</p>" for note in notes]
    return "\n".join([*parts, f"<p>{html.escape(_cost(results))}</p>"])


def as_json(results: Sequence["FederatedResult"], *, indent: int | None = 2) -> str:
    """Write one or several results of the same question as JSON; infinite limits become the text "Infinity"."""
    return json.dumps(as_dict(results), indent=indent, allow_nan=False)


def as_dict(results: Sequence["FederatedResult"]) -> dict[str, Any]:
    """Return one or several results of the same question as plain dicts, lists, numbers and text.

    Sizes and counts of missing values are null where they are withheld.
    """
    question = results[0].question
    return {
        "question": {
            "variables": list(question.variables),
            "group": question.group,
            "groups": list(question.groups),
            "k": question.k,
            "ends": question.ends.name,
            "alternative": results[0].alternative,
        },
        "variables": {variable: _variable_dict(results, variable) for variable in question.variables},
        "analyses": [{"analysis": r.analysis, "rounds": r.rounds, "bytes": r.bytes} for r in results],
    }


def _variable_dict(results: Sequence["FederatedResult"], variable: str) -> dict[str, Any]:
    found: dict[str, Any] = {
        "centers": [_center_dict(c, p, results[0].alternative) for c, p in _by_center(results, variable).items()],
        "tests": [_test_dict(r.tests[variable]) for r in results if variable in r.tests],
        "quantiles": [quantile_dict(q) for r in results for q in r.estimates_of(variable)],
        "failures": {r.analysis: r.failures[variable] for r in results if variable in r.failures},
    }
    for result in results:
        tables = getattr(result, "tables", {})
        if variable in tables:
            found["table"] = _table_dict(tables[variable])
    return found


def _center_dict(name: str, parts: Sequence[tuple[str, "Participation"]], alternative: Alternative) -> dict[str, Any]:
    merged = _merged(parts)
    statistic = merged["statistic"]
    return {
        "center": name,
        "status": _status(parts),
        "sizes": list(merged["sizes"]) if merged["sizes"] else None,
        "missing": [n if n >= 0 else None for n in merged["missing"]] if merged["missing"] else None,
        "u": statistic.u if statistic else None,
        "variance": statistic.variance if statistic else None,
        "superiority": statistic.superiority if statistic else None,
        "log_pvalue": statistic.log_pvalue(alternative) if statistic else None,
    }


def _test_dict(test: RankTestResult) -> dict[str, Any]:
    low, high = test.confidence_interval()
    return {
        "method": test.method,
        "statistic": test.statistic,
        "pvalue": test.pvalue,
        "log_pvalue": test.log_pvalue,
        "alternative": test.alternative,
        "superiority": test.superiority,
        "interval": {"level": 0.95, "low": low, "high": high},
        "notes": list(test.notes),
    }


def _table_dict(table: "Table") -> dict[str, Any]:
    return {"limits": plain(table.limits.tolist()), "counts": table.counts.tolist()}


def _sections(results: Sequence["FederatedResult"]) -> list[tuple[str, list[Rows], list[str]]]:
    """Return for each variable a title, the tables of centers and tests, and the notes."""
    question = results[0].question
    labels = ", ".join(question.groups)
    tested = ""
    if any(result.tests for result in results):
        labels = ", ".join(f"{letter} = {label}" for letter, label in zip("XY", question.groups, strict=False))
        tested = f", {results[0].alternative}"
    by = f" by {question.group} ({labels})" if question.group else ""
    title = f"{{}}{by}, k = {question.k}{tested}"
    return [
        (
            title.format(variable),
            _tables(results, variable),
            _notes(results, variable),
        )
        for variable in question.variables
    ]


def _tables(results: Sequence["FederatedResult"], variable: str) -> list[Rows]:
    """Return the centers, then tests and quantiles where there are any."""
    quantiles = [q for r in results for q in r.estimates_of(variable)]
    rows = [_center_rows(results, variable), _test_rows(results, variable)]
    rows.append([HEADER, *[row for q in quantiles for row in quantile_rows(q)]])
    return [found for found in rows if len(found) > 1 or found[0][0] == "center"]


def _center_rows(results: Sequence["FederatedResult"], variable: str) -> Rows:
    centers = _by_center(results, variable)
    header = ["center", *results[0].question.groups, *_CENTER_NUMBERS, "status"]
    rows = [header, *[_center_row(name, parts, results[0]) for name, parts in centers.items()]]
    if any(row[-2] != "-" for row in rows[1:]):
        return rows
    return [[*row[: -1 - len(_CENTER_NUMBERS)], row[-1]] for row in rows]  # nobody was asked for a statistic


def _center_row(name: str, parts: Sequence[tuple[str, "Participation"]], result: "FederatedResult") -> list[str]:
    merged = _merged(parts)
    sizes = [str(n) for n in merged["sizes"] or "-" * len(result.question.groups)]
    numbers = ["-"] * len(_CENTER_NUMBERS)
    if merged["statistic"]:
        statistic = merged["statistic"]
        numbers = [
            f"{statistic.u:.0f}",
            f"{statistic.superiority:.4f}",
            format_pvalue(statistic.log_pvalue(result.alternative)),
        ]
    return [name, *sizes, *numbers, _status(parts)]


def _merged(parts: Sequence[tuple[str, "Participation"]]) -> dict[str, Any]:
    """Take each number of a center from the first analysis that has it."""
    merged: dict[str, Any] = {"sizes": None, "missing": None, "statistic": None}
    for _, part in parts:
        for name, value in merged.items():
            merged[name] = value if value is not None else getattr(part, name)
    return merged


def _status(parts: Sequence[tuple[str, "Participation"]]) -> str:
    """Say what a center did; analysis by analysis only where they differ."""
    said = {name: f"{part.status}: {part.reason}" if part.reason else part.status for name, part in parts}
    if len(set(said.values())) == 1:
        return next(iter(said.values()))
    return "; ".join(f"{text} ({name})" for name, text in said.items())


def _by_center(results: Sequence["FederatedResult"], variable: str) -> dict[str, list[tuple[str, "Participation"]]]:
    centers: dict[str, list[tuple[str, Participation]]] = {}
    for result in results:
        for center in result.centers:
            centers.setdefault(center.name, []).append((result.analysis, center.variables[variable]))
    return centers


def _test_rows(results: Sequence["FederatedResult"], variable: str) -> Rows:
    return [_TEST_HEADER, *[_test_row(r.tests[variable]) for r in results if variable in r.tests]]


def _test_row(test: RankTestResult) -> list[str]:
    low, high = test.confidence_interval()
    return [
        test.method,
        f"{test.statistic:.4f}",
        format_pvalue(test.log_pvalue),
        f"{test.superiority:.4f}",
        f"{low:.4f} to {high:.4f}",
    ]


def _notes(results: Sequence["FederatedResult"], variable: str) -> list[str]:
    notes = []
    for result in results:
        if variable in result.failures:
            notes.append(f"{result.analysis}: no result, {result.failures[variable]}")
        notes += [f"{result.analysis}: {note}" for note in result.notes_of(variable)]
    return notes


def _cost(results: Sequence["FederatedResult"]) -> str:
    """Say what each analysis took; those that read the answers to another one took nothing."""
    asked = [r for r in results if r.rounds]
    return ", ".join(f"{r.analysis}: {r.rounds} round{'s'[: r.rounds - 1]}, {r.bytes:,} bytes" for r in asked)


def _aligned(rows: Rows) -> list[str]:
    """Line columns up: the first and the last to the left, numbers to the right."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = []
    for row in rows:
        cells = [row[0].ljust(widths[0])]
        cells += [cell.rjust(width) for cell, width in zip(row[1:-1], widths[1:-1], strict=True)]
        lines.append("  ".join([*cells, row[-1]]).rstrip())
    return lines


def _html_table(rows: Rows) -> str:
    head = "".join(f"<th>{html.escape(cell)}</th>" for cell in rows[0])
    body = "".join("<tr>" + "".join(f"<td>{html.escape(c)}</td>" for c in row) + "</tr>" for row in rows[1:])
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
