"""The centers of a run: their names, and what each of them did for each variable."""

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from fed_mwu.exchange import Question, Refusal, explain
from fed_mwu.outcomes import CenterOutcome, Participation, Status

from .nodes import distinct, natural_order, printable

__all__ = ["Center", "Roster"]

logger = logging.getLogger("fed_mwu.strategies")


@dataclass(slots=True)
class Center:
    """What the server knows of a center during a run."""

    node_id: int
    name: str
    named: bool
    parts: dict[str, Participation] = field(default_factory=dict)


class Roster:
    """The centers of a run, by node id.

    Parameters
    ----------
    nodes : mapping of int to str
        Ids of the nodes, and the names that the operator registered.
    variables : sequence of str
    """

    def __init__(self, nodes: Mapping[int, str], variables: Sequence[str]) -> None:
        self.centers: dict[int, Center] = {}
        for node_id, registered in sorted(nodes.items()):
            center = Center(node_id, self._free(printable(registered) or f"node {node_id}"), bool(registered))
            center.parts = dict.fromkeys(variables, Participation("not asked"))
            self.centers[node_id] = center

    def __iter__(self) -> Iterator[Center]:
        return iter(self.centers.values())

    def acknowledge(self, center: Center, own_name: str, refusals: Mapping[str, Refusal], question: Question) -> None:
        """Take from an answer what every answer has: the center's own name and its refusals."""
        if not center.named and (name := printable(own_name)):
            # Once only: of two centers that call themselves alike the second would get another number every round.
            center.name, center.named = self._free(name), True
        for variable, refusal in refusals.items():
            center.parts[variable] = Participation("declined", explain(refusal, question))

    def _free(self, name: str) -> str:
        return distinct(name, (center.name for center in self))

    def mark(self, center: Center, variables: Iterable[str], status: Status, reason: str) -> None:
        """Note why a center is not in the result of some variables."""
        for variable in variables:
            center.parts[variable] = Participation(status, reason)
        logger.info("%s %s: %s", center.name, status, reason)

    def present(self, variable: str) -> list[Participation]:
        """Return what the centers did that took part with a variable."""
        return [part for center in self if (part := center.parts[variable]).status == "took part"]

    def outcomes(self) -> tuple[CenterOutcome, ...]:
        """Return what each center did, by name: node ids are drawn at random, and two runs should read alike."""
        return tuple(CenterOutcome(c.name, dict(c.parts)) for c in sorted(self, key=lambda c: natural_order(c.name)))
