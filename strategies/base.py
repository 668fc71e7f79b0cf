"""The hooks of Flower's Strategy, implemented once: rounds, matching replies to centers, who declined and why.

A concrete strategy says what to ask in a round (`_ask`) and what to make of an answer (`_receive`). Everything that a
center sends is checked; a center that sends nonsense is excluded by name and the run goes on without it.
"""

import logging
from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from flwr.app import ArrayRecord, ConfigRecord, Message, MetricRecord, RecordDict
from flwr.serverapp import Grid
from flwr.serverapp.strategy import Strategy

from fed_mwu.errors import Decline, InvalidReply, NotPrivate
from fed_mwu.exchange import Question
from fed_mwu.limits import Ends
from fed_mwu.outcomes import FederatedResult
from fed_mwu.ranks import ALTERNATIVES, Alternative
from fed_mwu.record_messages import size_in_bytes
from fed_mwu.results import RankTestResult

from .nodes import wait_for_nodes
from .requests import Request, failure
from .results import StrategyResult, check_enough
from .roster import Roster

__all__ = ["FederatedStrategy"]

logger = logging.getLogger("fed_mwu.strategies")


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
        self.timeout = self._patience = float(timeout)
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
        self.roster = Roster({}, ())
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
        self._patience = self.timeout if timeout is None else float(timeout)
        while num_rounds is None or self._rounds < num_rounds:
            messages = self.configure_train(self._rounds + 1, arrays, train_config or ConfigRecord(), grid)
            if not messages:
                break
            new, _ = self.aggregate_train(self._rounds + 1, grid.send_and_receive(messages, timeout=self._patience))
            arrays = arrays if new is None else new
        found = self.result()
        check_enough(found, self.min_centers)
        return StrategyResult(arrays=arrays, analysis=found)

    def configure_train(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> list[Message]:
        """Write the messages of a round. A list: a generator would fail in deployment."""
        if server_round == 1:
            self._reset()
            nodes = wait_for_nodes(grid, at_least=self.min_centers, settle=self.settle, timeout=self.timeout)
            self.roster = Roster(nodes, self.question.variables)
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
        return self._end_round(), None

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

    def _end_round(self) -> ArrayRecord | None:
        """Make of a round's answers what must wait for all of them; return what travels on in Flower's arrays."""
        return None

    def _take(self, request: Request, reply: Message | None) -> None:
        """Take one center's reply, whatever it is: an answer, a refusal, an error, nonsense or nothing."""
        center, asked = request.center, request.question.variables
        if reply is None:
            self.roster.mark(center, asked, "timed out", f"no reply within {self._patience:g} s")
            return
        if reply.has_error():
            self.roster.mark(center, asked, "failed", failure(reply))
            return
        self._bytes += size_in_bytes(reply.content)
        try:
            self._receive(request, reply.content)
        except Decline as declined:
            self.roster.mark(center, asked, "declined", declined.detail)
        except (InvalidReply, NotPrivate) as wrong:
            self.roster.mark(center, asked, "excluded", str(wrong))
        except Exception as error:  # noqa: BLE001  (whatever foreign bytes cause, the others' run goes on)
            logger.warning("%s: the answer of %s raised %s", self.analysis, center.name, type(error).__name__)
            self.roster.mark(center, asked, "excluded", "its answer could not be read")

    def result(self) -> FederatedResult:
        """Return what has been found so far."""
        return FederatedResult(**self._common())

    def _common(self) -> dict[str, Any]:
        tests: dict[str, RankTestResult] = {}
        failures: dict[str, str] = {}
        for variable in self.question.variables:
            present = len(self.roster.present(variable))
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
            "centers": self.roster.outcomes(),
            "rounds": self._rounds,
            "bytes": self._bytes,
        }
