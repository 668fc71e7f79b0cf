"""Which centers there are: wait for them, and call them by the names that the operator registered."""

import re
import time
from collections.abc import Iterable

from flwr.serverapp import Grid

__all__ = ["connected_nodes", "distinct", "natural_order", "printable", "wait_for_nodes"]

POLL_SECONDS = 0.1
LONGEST_NAME = 80


def connected_nodes(grid: Grid) -> dict[int, str]:
    """Return the connected nodes: id to registered name, "" where there is none."""
    return {node.node_id: node.name for node in grid.get_nodes()}


def wait_for_nodes(grid: Grid, *, at_least: int, settle: float, timeout: float) -> dict[int, str]:
    """Wait until enough nodes are connected and their number has not changed for a while.

    At the start of a simulation the nodes appear one after the other, and a center that comes a moment too late would
    be left out of the run without a word.

    Parameters
    ----------
    grid : Grid
    at_least : int
        Number of nodes to wait for.
    settle : float
        Seconds for which the number must stay the same.
    timeout : float
        Seconds after which to go on with the nodes that there are.

    Returns
    -------
    dict of int to str
        Node ids to registered names.
    """
    deadline = time.monotonic() + timeout
    nodes = connected_nodes(grid)
    since = time.monotonic()
    while time.monotonic() < deadline and (len(nodes) < at_least or time.monotonic() - since < settle):
        time.sleep(POLL_SECONDS)
        now = connected_nodes(grid)
        if len(now) != len(nodes):
            since = time.monotonic()
        nodes = now
    return nodes


def printable(name: str) -> str:
    """Return a name without control characters and not too long: a center chooses its own, and logs show it."""
    return "".join(c for c in name if c.isprintable()).strip()[:LONGEST_NAME]


def natural_order(name: str) -> list[tuple[int, str]]:
    """Return a key that sorts names as people do: "site 2" before "site 10"."""
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"(\d+)", name) if part]


def distinct(name: str, taken: Iterable[str]) -> str:
    """Return `name`, with a number behind it if it is taken."""
    used = set(taken)
    number = 1
    candidate = name
    while candidate in used:
        number += 1
        candidate = f"{name} ({number})"
    return candidate
