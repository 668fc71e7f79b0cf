"""The hooks of Flower's Strategy, implemented once: rounds, matching replies to centers, who declined and why.

A concrete strategy says what to ask in a round (`_ask`) and what to make of an answer (`_receive`). Everything that a
center sends is checked; a center that sends nonsense is excluded by name and the run goes on without it.
"""

import logging
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from flwr.app import ArrayRecord, ConfigRecord, Message, MetricRecord, RecordDict
from flwr.serverapp import Grid
from flwr.serverapp.strategy import Result, Strategy

from fed_mwu.errors import Decline, InvalidReply, NotPrivate, TooFewCenters
from fed_mwu.exchange import Counts, Question, Refusal, explain
from fed_mwu.limits import Ends
from fed_mwu.messages import size_in_bytes
from fed_mwu.outcomes import CenterOutcome, FederatedResult, Participation, Status
from fed_mwu.ranks import ALTERNATIVES, Alternative
from fed_mwu.results import RankTestResult

from .nodes import distinct, printable, wait_for_nodes

__all__ = ["Center", "FederatedStrategy", "Request", "StrategyResult"]

logger = logging.getLogger("fed_mwu.strategies")

# Flower's own codes (FLOWER.md); the text that comes with them may hold a traceback and is not looked at.
_FLOWER_ERRORS = {
    1: "its app did not load",
    2: "its app failed",
    3: "the message expired",
    5: "the node is not available",
    8: "its process died",
}


@dataclass(slots=True)
class Center:
    """What the server knows of a center during a run."""

    node_id: int
    name: str
    named_by_operator: bool
    parts: dict[str, Participation] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Request:
    """One message to a center: the action, its content, and the question that the answer must fit."""

    center: Center
    action: str
    content: RecordDict
    question: Question


@dataclass
class StrategyResult(Result):
    """Flower's result of a run together with the statistical one.

    Parameters
    ----------
    analysis : FederatedResult
        Tests, centers, rounds and bytes.
    """

    analysis: FederatedResult = field(kw_only=True)

    def summary(self) -> str:
        """Return the centers and the tests as text."""
        return self.analysis.summary()

    def _repr_html_(self) -> str:
        return self.analysis._repr_html_()


class FederatedStrategy(Strategy):
    """Base of fed_mwu's strategies; its parameters are those of all of them.

    Parameters
    ----------
    variables : sequence of str
        Columns to analyse, all in the same rounds. Needed on a real federation; `fed_mwu.simulations.Federation`
        fills in what is left out of `variables`, `group`, `groups` and `k`.
    group : str
        Column that holds the group labels.
    groups : sequence of str
        Labels, in the order X, Y for the tests.
    k : int
        Anonymity threshold, default 10.
    ends : Ends
        Ends of the tables, default open.
    max_bins : int
        See `fed_mwu.bin_center`.
    alternative : {"two-sided", "greater", "less"}
        "greater": the second group tends to be larger.
    min_centers : int
        Least number of centers for a result, per variable.
    timeout : float
        Seconds to wait for the replies of a round.
    settle : float
        Seconds for which the number of connected centers must stay the same before the run starts.

    Raises
    ------
    ValueError, TypeError
        If a value is not what it should be.
    """

    analysis = ""

    def __init__(
        self,
        *,
        variables: Sequence[str] | None = None,
        group: str | None = None,
        groups: Sequence[str] | None = None,
        k: int | None = None,
        ends: Ends | None = None,
        max_bins: int | None = None,
        alternative: Alternative = "two-sided",
        min_centers: int = 1,
        timeout: float = 3600.0,
        settle: float = 2.0,
    ) -> None:
        if alternative not in ALTERNATIVES:
            raise ValueError(f"alternative must be one of {ALTERNATIVES}, got {alternative!r}")
        if not (isinstance(min_centers, int) and min_centers >= 1):
            raise ValueError(f"min_centers must be a whole number of at least 1, got {min_centers!r}")
        if not timeout > 0:
            raise ValueError(f"timeout must be a positive number of seconds, got {timeout!r}")
        given = {"variables": variables, "group": group, "groups": groups, "k": k, "ends": ends, "max_bins": max_bins}
        self._given: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
        self.alternative: Alternative = alternative
        self.min_centers = min_centers
        self.timeout = float(timeout)
        self.settle = float(settle)
        if {"variables", "group", "groups"} <= set(self._given):
            Question(**self._given)  # a wrong value is told now, not when the run starts
        self._reset()

    # --- what a concrete strategy says ---

    @abstractmethod
    def _ask(self, server_round: int, arrays: ArrayRecord) -> list[Request]:
        """Return the messages of a round; an empty list ends the run."""

    @abstractmethod
    def _receive(self, request: Request, content: RecordDict) -> None:
        """Take a center's answer; raise `Decline` or `InvalidReply` if it is none."""

    @abstractmethod
    def _test(self, variable: str) -> RankTestResult | None:
        """Return the test of a variable, from the centers that took part."""

    @property
    @abstractmethod
    def n_rounds(self) -> int:
        """Number of rounds that the run takes, as far as it is known."""

    # --- running ---

    @property
    def question(self) -> Question:
        """What the centers are asked.

        Raises
        ------
        ValueError
            If variables, group or groups are still to be given.
        """
        lacking = {"variables", "group", "groups"} - set(self._given)
        if lacking:
            raise ValueError(f"a run needs {', '.join(sorted(lacking))}: give them to {type(self).__name__}(...)")
        return Question(**self._given)

    def with_defaults(self, **defaults: Any) -> None:
        """Fill in parts of the question that were left out."""
        self._given = {**defaults, **self._given}

    def _reset(self) -> None:
        self.centers: dict[int, Center] = {}
        self._requests: list[tuple[Message, Request]] = []
        self._rounds = 0
        self._bytes = 0

    def start(
        self,
        grid: Grid,
        initial_arrays: ArrayRecord | None = None,
        num_rounds: int | None = None,
        timeout: float | None = None,
        train_config: ConfigRecord | None = None,
        evaluate_config: ConfigRecord | None = None,
        evaluate_fn: Callable[[int, ArrayRecord], MetricRecord | None] | None = None,
    ) -> StrategyResult:
        """Run the analysis; only `grid` is needed.

        Unlike Flower's own loop this one ends when the strategy has nothing left to ask, and has no evaluation.
        Flower's works too: ``Strategy.start(strategy, grid, ArrayRecord(), num_rounds=...)``, and then
        ``strategy.result()``.

        Parameters
        ----------
        grid : Grid
            The federation.
        initial_arrays : ArrayRecord, optional
            Ignored by strategies that start from nothing.
        num_rounds : int, optional
            Most rounds to run.
        timeout : float, optional
            Takes the place of the strategy's own.
        train_config, evaluate_config, evaluate_fn
            Not used: they belong to training.

        Returns
        -------
        StrategyResult
            Flower's `Result` with the final tables in `arrays`; the statistical result is its `analysis`.

        Raises
        ------
        TooFewCenters
            If no variable has enough centers; its `result` tells what each center did.
        ValueError
            If the question is incomplete.
        """
        self._reset()
        self.summary()
        arrays = ArrayRecord() if initial_arrays is None else initial_arrays
        patience = self.timeout if timeout is None else timeout
        while num_rounds is None or self._rounds < num_rounds:
            messages = self.configure_train(self._rounds + 1, arrays, train_config or ConfigRecord(), grid)
            if not messages:
                break
            new, _ = self.aggregate_train(self._rounds + 1, grid.send_and_receive(messages, timeout=patience))
            arrays = arrays if new is None else new
        found = self.result()
        if not self._enough(found):
            raise TooFewCenters(_too_few(found, self.min_centers), found)
        return StrategyResult(arrays=arrays, analysis=found)

    def configure_train(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> list[Message]:
        """Write the messages of a round. A list: a generator would fail in deployment."""
        if server_round == 1:
            self._reset()
            self._meet(wait_for_nodes(grid, at_least=self.min_centers, settle=self.settle, timeout=self.timeout))
        self._requests = [
            (
                Message(
                    request.content,
                    dst_node_id=request.center.node_id,
                    message_type=f"query.{request.action}",
                    group_id=str(server_round),
                    ttl=self.timeout,
                ),
                request,
            )
            for request in self._ask(server_round, arrays)
        ]
        return [message for message, _ in self._requests]

    def aggregate_train(
        self, server_round: int, replies: Iterable[Message]
    ) -> tuple[ArrayRecord | None, MetricRecord | None]:
        """Take the replies of a round."""
        # By message id: an error that the SuperLink makes for a lost node carries the SuperLink's own node id.
        by_message = {reply.metadata.reply_to_message_id: reply for reply in replies}
        self._rounds += bool(self._requests)
        for message, request in self._requests:
            self._bytes += size_in_bytes(request.content)
            self._take(request, by_message.get(message.metadata.message_id))
        self._requests = []
        return self._arrays(), None

    def configure_evaluate(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> list[Message]:
        """Evaluate nothing."""
        return []

    def aggregate_evaluate(self, server_round: int, replies: Iterable[Message]) -> MetricRecord | None:
        """Evaluate nothing."""
        return None

    def summary(self) -> None:
        """Log what is about to run."""
        asked = self.question
        logger.info(
            "%s: %d variable(s) by %s %s, k = %d",
            self.analysis,
            len(asked.variables),
            asked.group,
            asked.groups,
            asked.k,
        )

    def _arrays(self) -> ArrayRecord | None:
        return None

    def _meet(self, nodes: Mapping[int, str]) -> None:
        variables = self.question.variables
        for node_id, registered in sorted(nodes.items()):
            name = distinct(printable(registered) or f"node {node_id}", (c.name for c in self.centers.values()))
            center = Center(node_id, name, bool(registered))
            center.parts = dict.fromkeys(variables, Participation("not asked"))
            self.centers[node_id] = center

    def _take(self, request: Request, reply: Message | None) -> None:
        """Take one center's reply, whatever it is: an answer, a refusal, an error, nonsense or nothing."""
        center, asked = request.center, request.question.variables
        if reply is None:
            return self._mark(center, asked, "timed out", f"no reply within {self.timeout:g} s")
        if reply.has_error():
            return self._mark(
                center, asked, "failed", _FLOWER_ERRORS.get(reply.error.code, f"Flower's error {reply.error.code}")
            )
        self._bytes += size_in_bytes(reply.content)
        try:
            self._receive(request, reply.content)
        except Decline as declined:
            self._mark(center, asked, "declined", declined.detail)
        except (InvalidReply, NotPrivate) as wrong:
            self._mark(center, asked, "excluded", str(wrong))

    def _mark(self, center: Center, variables: Iterable[str], status: Status, reason: str = "") -> None:
        for variable in variables:
            center.parts[variable] = Participation(status, reason)
        logger.info("%s: %s %s, %s", self.analysis, center.name, status, reason)

    def _introduce(self, center: Center, own_name: str) -> None:
        """Call a center by its own name if the operator has registered none."""
        if not center.named_by_operator and (name := printable(own_name)):
            center.name = distinct(name, (c.name for c in self.centers.values() if c is not center))

    def _refuse(self, request: Request, refusals: Mapping[str, Refusal]) -> None:
        for variable, refusal in refusals.items():
            request.center.parts[variable] = Participation("declined", explain(refusal, request.question))

    def result(self) -> FederatedResult:
        """Return what has been found so far."""
        return FederatedResult(**self._common())

    def _common(self) -> dict[str, Any]:
        tests: dict[str, RankTestResult] = {}
        failures: dict[str, str] = {}
        for variable in self.question.variables:
            present = sum(c.parts[variable].status == "took part" for c in self.centers.values())
            if present < self.min_centers:
                failures[variable] = f"{present} of at least {self.min_centers} centers took part"
                continue
            try:
                test = self._test(variable)
            except ValueError as error:
                failures[variable] = str(error)
                continue
            if test is not None:
                tests[variable] = test
        return {
            "analysis": self.analysis,
            "question": self.question,
            "alternative": self.alternative,
            "tests": tests,
            "failures": failures,
            "centers": tuple(CenterOutcome(c.name, dict(c.parts)) for c in self.centers.values()),
            "rounds": self._rounds,
            "bytes": self._bytes,
        }

    def _enough(self, found: FederatedResult) -> bool:
        return len(found.failures) < len(found.question.variables)


def check_sizes_private(counts: Counts, k: int) -> None:
    """Refuse sizes between 0 and k: a center that sends them does not keep the rules."""
    if any(n != -1 and 0 != n < k for n in (*counts.sizes, *counts.missing)) or min(counts.sizes) < 0:
        raise InvalidReply("a size lies between 0 and k")


def _too_few(found: FederatedResult, least: int) -> str:
    said = "; ".join(
        f"{center.name} {part.status}" + (f" ({part.reason})" if part.reason else "")
        for center in found.centers
        for part in [next(iter(center.variables.values()))]
    )
    return f"fewer than min_centers={least} centers took part: {said or 'no center is connected'}"
