"""Quantiles that take rounds of their own: the Yeo-Johnson fit to sums, and the quantile loss (METHODS 8).

`YeoJohnson` takes 2 rounds on plain data and 3 at most; a center gives away 17 and then 13 lambdas' sums of each group.
`QuantileLoss` takes 11 rounds and finds the pooled sample quantile to the last bit; it gives away single values, and
centers decline unless their own configuration allows it. Both serve all variables, groups and probabilities at once.
"""

from typing import Any

import numpy as np
from flwr.app import ArrayRecord, RecordDict
from numpy.typing import ArrayLike
from scipy.special import ndtri

from fed_mwu.errors import InvalidReply
from fed_mwu.outcomes import Participation, QuantilesResult
from fed_mwu.quantile_exchange import LossQuestion, LossReply, TransformQuestion
from fed_mwu.quantile_loss import LossAnswer, QuantileSearch
from fed_mwu.quantile_messages import (
    decode_loss_reply,
    decode_transform_reply,
    encode_loss_question,
    encode_transform_question,
)
from fed_mwu.quantiles import QuantileEstimates, check_probabilities
from fed_mwu.results import RankTestResult
from fed_mwu.table import are_private
from fed_mwu.yeo_johnson_sums import (
    FIRST_INTERVAL,
    FIRST_NODES,
    MOST_ROUNDS,
    NEXT_NODES,
    Profile,
    TransformSums,
    chebyshev_nodes,
    next_nodes,
    pool_sums,
)

from .base import FederatedStrategy
from .requests import Request
from .roster import Center

__all__ = ["QuantileLoss", "QuantileStrategy", "YeoJohnson"]

DEFAULT_PROBABILITIES = (0.05, 0.25, 0.5, 0.75, 0.95)
LEVEL = 0.95
MOST_LOSS_ROUNDS = 48  # several restarts, after centers that fell out


class QuantileStrategy(FederatedStrategy):
    """Base of the iterative quantile strategies: rounds to all centers until every variable is done.

    Parameters
    ----------
    probabilities : array_like
        Between 0 and 1.
    **options
        Those of `FederatedStrategy`.
    """

    def __init__(self, *, probabilities: ArrayLike = DEFAULT_PROBABILITIES, **options: Any) -> None:
        self.probabilities = check_probabilities(probabilities)
        super().__init__(**options)

    def _reset(self) -> None:
        super()._reset()
        self._pending: list[str] | None = None
        self._failures: dict[str, str] = {}
        self._found: dict[str, tuple[QuantileEstimates, ...]] = {}

    @property
    def pending(self) -> list[str]:
        """Variables that still need a round."""
        return list(self.question.variables) if self._pending is None else self._pending

    def _asked_of(self, center: Center) -> list[str]:
        """Return the pending variables that a center takes part with, or has not been asked about yet."""
        return [v for v in self.pending if center.parts[v].status in {"took part", "not asked"}]

    def _accept(self, request: Request, variable: str, sizes: tuple[int, ...]) -> None:
        if not are_private(sizes, request.question.k).all():
            raise InvalidReply("a group that it reports has fewer than k values")
        request.center.parts[variable] = Participation("took part", sizes=sizes)

    def _test(self, variable: str) -> RankTestResult | None:
        return None

    def result(self) -> QuantilesResult:
        """Return the quantiles and what each center did."""
        common = self._common()
        common["failures"] = {**common["failures"], **self._failures}
        found = {v: q for v, q in self._found.items() if v not in common["failures"]}
        return QuantilesResult(**common, quantiles=found)


class YeoJohnson(QuantileStrategy):
    """Quantiles of the Yeo-Johnson normal model, fitted to all data by maximum likelihood; see `QuantileStrategy`.

    Examples
    --------
    >>> from fed_mwu import fit_yeo_johnson
    >>> from fed_mwu.simulations import Federation
    >>> x, y = [i**1.5 / 9 for i in range(60)], [i**1.4 / 7 for i in range(50)]
    >>> result = Federation({"A": {"all": x}, "B": {"all": y}}).run(YeoJohnson(probabilities=[0.5]))
    >>> bool(abs(result.estimates[0] - fit_yeo_johnson([*x, *y]).quantiles(0.5)) < 1e-9), result.rounds
    (True, 2)
    """

    analysis = "yeo-johnson data"

    def _reset(self) -> None:
        super()._reset()
        self._intervals: dict[str, list[tuple[float, float] | None]] = {}
        self._profiles: dict[str, list[Profile | None]] = {}
        self._sums: dict[str, dict[str, tuple[TransformSums, ...]]] = {}

    def _ask(self, server_round: int, arrays: ArrayRecord) -> list[Request]:
        if server_round == 1:
            n_groups = len(self.question.groups)
            self._intervals = {v: [FIRST_INTERVAL] * n_groups for v in self.question.variables}
            self._profiles = {v: [None] * n_groups for v in self.question.variables}
        self._sums = {variable: {} for variable in self.pending}
        number = FIRST_NODES if server_round == 1 else NEXT_NODES
        nodes = {variable: self._nodes(variable, number) for variable in self.pending}
        requests = []
        for center in self.roster:
            if names := self._asked_of(center):
                question = self.question.about(names)
                asked = TransformQuestion(question, {v: nodes[v] for v in names})
                requests.append(Request(center, "transform", encode_transform_question(asked), question, asked))
        return requests

    def _nodes(self, variable: str, number: int) -> np.ndarray[Any, np.dtype[np.float64]]:
        # A group that is done is asked nothing new: the identity, again and again.
        return np.stack(
            [np.ones(number) if i is None else chebyshev_nodes(i, number) for i in self._intervals[variable]]
        )

    def _receive(self, request: Request, content: RecordDict) -> None:
        asked = request.asked
        if not isinstance(asked, TransformQuestion):
            raise TypeError("a transform request must carry its question")
        reply = decode_transform_reply(content, asked)
        for variable, sums in reply.sums.items():
            self._accept(request, variable, tuple(int(part.n) for part in sums))
        self.roster.acknowledge(request.center, reply.center, reply.refusals, request.question)
        for variable, sums in reply.sums.items():
            self._sums[variable][request.center.name] = sums

    def _end_round(self) -> ArrayRecord | None:
        pending = []
        for variable in self.pending:
            self._digest(variable)
            if variable not in self._failures and any(i is not None for i in self._intervals[variable]):
                pending.append(variable)
            elif variable not in self._failures:
                self._found[variable] = self._estimates(variable)
        self._pending = pending
        return None

    def _digest(self, variable: str) -> None:
        """Pool a round's sums of each group, and find out what to ask next."""
        # In the order of names: node ids are drawn at random, and the order of a sum shows in its last bit.
        found = [sums for _, sums in sorted(self._sums[variable].items())]
        for g, interval in enumerate(self._intervals[variable]):
            parts = [sums[g] for sums in found if sums[g].n]
            if interval is None or not parts:
                self._intervals[variable][g] = None
                continue
            profile = Profile(interval, pool_sums(parts))
            if not profile.usable:
                self._failures[variable] = "the transformed values are beyond float64: change the unit of the data"
                return
            following = next_nodes(profile)
            if following is not None and self._rounds >= MOST_ROUNDS:
                self._failures[variable] = "the likelihood has no maximum near: change the unit of the data"
                return
            self._profiles[variable][g] = profile
            self._intervals[variable][g] = following

    def _estimates(self, variable: str) -> tuple[QuantileEstimates, ...]:
        found = []
        p = self.probabilities
        for label, profile in zip(self.question.groups, self._profiles[variable], strict=True):
            if profile is not None:
                low, high = profile.interval_of(p, LEVEL)
                found.append(QuantileEstimates(label, self.analysis, p, profile.fit().quantiles(p), low, high))
        return tuple(found)


class QuantileLoss(QuantileStrategy):
    """The pooled sample quantile by the quantile loss; see `QuantileStrategy` and `fed_mwu.quantile_loss`.

    Centers decline unless their own configuration says ``allow-quantile-loss``.
    """

    analysis = "loss"

    def _reset(self) -> None:
        super()._reset()
        self._searches: dict[str, list[list[QuantileSearch]]] = {}
        self._losses: dict[str, list[tuple[tuple[int, ...], tuple[LossAnswer, ...]]]] = {}
        self._present: dict[str, list[str]] = {}

    def _ask(self, server_round: int, arrays: ArrayRecord) -> list[Request]:
        if not self.pending:
            return []
        self._losses = {variable: [] for variable in self.pending}
        for variable in self.pending:
            self._searches.setdefault(variable, self._fresh())
        # Variables share rows of probabilities; those that have just started repeat theirs.
        rows = self._rows()
        probabilities = np.tile(self.probabilities, rows)
        candidates = {variable: self._candidates(variable, rows) for variable in self.pending}
        requests = []
        for center in self.roster:
            if names := self._asked_of(center):
                question = self.question.about(names)
                asked = LossQuestion(question, probabilities, {v: candidates[v] for v in names})
                requests.append(Request(center, "loss", encode_loss_question(asked), question, asked))
        return requests

    def _rows(self) -> int:
        return max(len(searches) for v in self.pending for searches in self._searches[v]) // self.probabilities.size

    def _fresh(self) -> list[list[QuantileSearch]]:
        return [[QuantileSearch(float(p)) for p in self.probabilities] for _ in self.question.groups]

    def _candidates(self, variable: str, rows: int) -> np.ndarray[Any, np.dtype[np.float64]]:
        return np.stack(
            [
                np.stack([search.candidates() for search in (searches * rows)[: rows * self.probabilities.size]])
                for searches in self._searches[variable]
            ]
        )

    def _receive(self, request: Request, content: RecordDict) -> None:
        asked = request.asked
        if not isinstance(asked, LossQuestion):
            raise TypeError("a loss request must carry its question")
        reply: LossReply = decode_loss_reply(content, asked)
        for variable, sizes in reply.sizes.items():
            self._accept(request, variable, sizes)
        self.roster.acknowledge(request.center, reply.center, reply.refusals, request.question)
        for variable, losses in reply.losses.items():
            self._losses[variable].append((reply.sizes[variable], losses))

    def _end_round(self) -> ArrayRecord | None:
        pending = []
        for variable in self.pending:
            present = [center.name for center in self.roster if center.parts[variable].status == "took part"]
            if self._present.setdefault(variable, present) != present:
                # Earlier answers hold for other patients: start again with those that are left.
                self._present[variable], self._searches[variable] = present, self._fresh()
                if present and self._rounds < MOST_LOSS_ROUNDS:
                    pending.append(variable)
            elif present and not self._narrow(variable):
                pending.append(variable)
            elif present:
                self._found[variable] = self._estimates(variable)
        self._pending = pending
        return None

    def _narrow(self, variable: str) -> bool:
        """Take a round's answers; tell whether all searches of a variable are done."""
        for g, searches in enumerate(self._searches[variable]):
            n = sum(sizes[g] for sizes, _ in self._losses[variable])
            if not n:
                continue
            upper = np.sum([losses[g].upper for _, losses in self._losses[variable]], axis=0)
            if len(searches) == self.probabilities.size:
                # Only now the size is known. The first candidates are the same for all probabilities, so that the
                # searches for the confidence limits miss nothing.
                half = ndtri(0.5 + LEVEL / 2.0) * np.sqrt(self.probabilities * (1.0 - self.probabilities) / n)
                for p in (*np.maximum(self.probabilities - half, 0.0), *np.minimum(self.probabilities + half, 1.0)):
                    searches.append(QuantileSearch(float(p)))
            at_most = upper + np.resize(self.probabilities, upper.shape[0])[:, np.newaxis] * n
            for i, search in enumerate(searches):
                if not search.done:
                    search.narrow(at_most[i % at_most.shape[0]] - search.probability * n, n)
        # A group without values keeps its first few searches, and needs no answer.
        started = (s for s in self._searches[variable] if len(s) > self.probabilities.size)
        return all(search.done for searches in started for search in searches)

    def _estimates(self, variable: str) -> tuple[QuantileEstimates, ...]:
        found = []
        size = self.probabilities.size
        for label, searches in zip(self.question.groups, self._searches[variable], strict=True):
            if len(searches) > size:
                answers = np.array([search.answer for search in searches])
                estimates, low, high = answers[:size], answers[size : 2 * size], answers[2 * size :]
                found.append(QuantileEstimates(label, self.analysis, self.probabilities, estimates, low, high))
        return tuple(found)
