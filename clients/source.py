"""Where a center's data come from.

In a simulation a partition is one center of the bundled demo, or one CSV file of a folder that the run config names.
On a deployed node only the node's own configuration says where data are: a path in a run config comes from outside
and is not looked at there.
"""

import csv
import hmac
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Protocol, cast

import numpy as np
from flwr.app import Context
from numpy.typing import ArrayLike, NDArray

from fed_mwu.errors import Decline
from fed_mwu.values import real_values

from .secret import site_secret

__all__ = ["ColumnSource", "GroupSource", "Source", "demo_sources", "open_source", "read_csv"]

DEFAULT_MINIMUM_K = 10
MISSING = frozenset({"", "?", "na", "nan", "null", "none"})

Values = NDArray[np.float64] | NDArray[np.int64]


class Source(Protocol):
    """What the handlers need to know of a center."""

    @property
    def name(self) -> str:
        """Name of the center."""

    @property
    def minimum_k(self) -> int:
        """The smallest k that the center accepts."""

    @property
    def secret(self) -> bytes:
        """Known to the center alone; it places limits inside their gaps."""

    @property
    def allow_quantile_loss(self) -> bool:
        """Whether the center answers the quantile loss, which gives away single values."""

    def groups(self, variable: str, column: str, labels: Sequence[str]) -> list[Values]:
        """Return the values of a variable for each label of the grouping column, NaN where missing.

        Raises
        ------
        Decline
            "unknown-variable", "unknown-group" or "not-numeric".
        """


def _simulation_secret(name: str) -> bytes:
    """Return a secret that is none: every run of a simulation is to give the same numbers."""
    return hmac.digest(b"fed_mwu simulation", name.encode(), "sha256")


@dataclass(frozen=True, slots=True)
class GroupSource:
    """A center in memory whose values are already in groups: ``values[variable][label]``."""

    name: str
    values: Mapping[str, Mapping[str, ArrayLike]]
    minimum_k: int = 1
    allow_quantile_loss: bool = False

    @property
    def secret(self) -> bytes:
        """Public: this source is for simulations."""
        return _simulation_secret(self.name)

    def groups(self, variable: str, column: str, labels: Sequence[str]) -> list[Values]:
        """See `Source.groups`. A group that the center does not have is empty; without a column all groups are one."""
        if variable not in self.values:
            raise Decline("unknown-variable", "not one of this center's variables")
        if not column:
            return [np.concatenate([_numeric(values) for values in self.values[variable].values()])]
        return [_numeric(self.values[variable].get(label, ())) for label in labels]


@dataclass(frozen=True, slots=True)
class ColumnSource:
    """A center whose data are columns of equal length, one row per patient."""

    name: str
    columns: Mapping[str, Sequence[object]]
    secret: bytes
    minimum_k: int = 1
    allow_quantile_loss: bool = False

    def groups(self, variable: str, column: str, labels: Sequence[str]) -> list[Values]:
        """See `Source.groups`.

        Labels are compared as text, and as numbers where both are numbers: "1" is "1.0". "1|2" stands for either of two
        labels. Without a column all rows are one group.
        """
        if variable not in self.columns:
            raise Decline("unknown-variable", "not one of this center's columns")
        if not column:
            return [_numeric([_present(value) for value in self.columns[variable]])]
        if column not in self.columns:
            raise Decline("unknown-group", "not one of this center's columns")
        values = _numeric([_present(value) for value in self.columns[variable]])
        found = np.array([_label(value) for value in self.columns[column]], dtype=np.str_)
        return [values[np.isin(found, _alternatives(label, found))] for label in labels]


def _numeric(values: ArrayLike | list[object]) -> Values:
    try:
        return real_values(cast(ArrayLike, values), "variable")
    except (TypeError, ValueError):
        raise Decline("not-numeric", "the variable holds something that is no number") from None


def _present(value: object) -> object:
    return None if isinstance(value, str) and value.strip().lower() in MISSING else value


def _label(value: object) -> str:
    text = str(value).strip()
    try:
        return repr(float(text))
    except ValueError:
        return text


def _alternatives(label: str, found: NDArray[np.str_]) -> list[str]:
    """Return the labels that a group's label stands for: itself if it occurs, else what "|" separates in it."""
    return [_label(label)] if _label(label) in found else [_label(part) for part in label.split("|")]


def read_csv(path: Path) -> dict[str, list[str]]:
    """Read a CSV file with a header line into columns of text.

    Raises
    ------
    Decline
        "no-data", if there is no such file, or it is no CSV with a header and rows of equal length.
    """
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            header, *rows = csv.reader(file)
    except (OSError, UnicodeDecodeError, ValueError, csv.Error):
        raise Decline("no-data", "the data file cannot be read") from None
    rows = [row for row in rows if row]
    if len(set(header)) != len(header) or any(len(row) != len(header) for row in rows):
        raise Decline("no-data", "the data file is no table with one header line")
    return {name.strip(): [row[i] for row in rows] for i, name in enumerate(header)}


@cache
def demo_sources() -> tuple[ColumnSource, ...]:
    """Return the four heart-disease centers of the bundled demo."""
    text = (resources.files("fed_mwu") / "data" / "heart.json").read_text(encoding="utf-8")
    centers: dict[str, dict[str, list[object]]] = json.loads(text)["centers"]
    return tuple(ColumnSource(name, columns, _simulation_secret(name)) for name, columns in centers.items())


def open_source(context: Context) -> Source:
    """Return the data of the node that a context belongs to.

    Raises
    ------
    Decline
        "no-data".
    """
    node = context.node_config
    # Flower gives both only to simulated nodes; a deployed node that names its data is never taken for one.
    if "partition-id" in node and "num-partitions" in node and "data" not in node:
        source = _partition(int(node["partition-id"]), str(context.run_config.get("data", "")))
        # A simulated center has no operator: the run itself says what it would allow.
        return replace(source, allow_quantile_loss=context.run_config.get("allow-quantile-loss") is True)
    if "data" not in node:
        raise Decline("no-data", "start the SuperNode with --node-config 'data=\"...\"'")
    path = Path(str(node["data"]))
    secret = site_secret(Path(str(node["secret"]))) if "secret" in node else site_secret()
    name = str(node.get("name", path.stem))
    minimum_k, allowed = int(node.get("min-k", DEFAULT_MINIMUM_K)), node.get("allow-quantile-loss") is True
    return ColumnSource(name, read_csv(path), secret, minimum_k, allowed)


def _partition(number: int, folder: str) -> ColumnSource:
    if not folder:
        centers = demo_sources()
        if number >= len(centers):
            raise Decline("no-data", f"the demo has {len(centers)} centers")
        return centers[number]
    files = sorted(Path(folder).glob("*.csv"))
    if number >= len(files):
        raise Decline("no-data", "the folder has fewer CSV files than there are nodes")
    name = files[number].stem
    return ColumnSource(name, read_csv(files[number]), _simulation_secret(name))
