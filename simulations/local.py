"""The in-process engine: the strategies and the ClientApp of a real federation, without Ray, in milliseconds.

What differs from a real federation is only who carries the messages. Not promised: secrecy of the limits' places,
whose key is public here so that every run gives the same numbers.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TypeAlias

from flwr.app import Context, Message, RecordDict
from flwr.clientapp import ClientApp
from flwr.proto.node_pb2 import NodeInfo
from flwr.serverapp import Grid
from flwr.supercore.run import Run
from flwr.supercore.task_identity import TaskIdentity
from numpy.typing import ArrayLike

from fed_mwu.binning import check_settings
from fed_mwu.clients.app import make_app
from fed_mwu.clients.source import GroupSource
from fed_mwu.outcomes import FederatedResult
from fed_mwu.strategies.base import FederatedStrategy

__all__ = ["Federation", "LocalGrid", "identity"]

RUN_ID = 1
SERVER_ID = 1
DEFAULT_VARIABLE = "value"

Groups: TypeAlias = Mapping[str, ArrayLike]


class LocalGrid(Grid):
    """A Flower Grid that runs a ClientApp in this process, the moment a message is pushed.

    Parameters
    ----------
    app : ClientApp
    names : mapping of int to str
        Node ids, and the names under which an operator would have registered them.
    """

    def __init__(self, app: ClientApp, names: Mapping[int, str]) -> None:
        self._app = app
        self._names = dict(names)
        self._contexts = {
            node_id: Context(RUN_ID, node_id, node_config={}, state=RecordDict(), run_config={}) for node_id in names
        }
        self._replies: dict[str, Message] = {}
        self._pushed = 0

    def set_run(self, run: Run) -> None:
        """Do nothing: there is one run."""

    @property
    def run(self) -> Run:
        """The only run."""
        return Run.create_empty(RUN_ID)

    def create_message(
        self, content: RecordDict, message_type: str, dst_node_id: int, group_id: str, ttl: float | None = None
    ) -> Message:
        """Make a message; `Message(...)` does the same."""
        return Message(content, dst_node_id, message_type, group_id=group_id, ttl=ttl)

    def get_node_ids(self) -> list[int]:
        """Return the ids of all nodes."""
        return list(self._names)

    def get_nodes(self) -> list[NodeInfo]:
        """Return all nodes with their names."""
        return [NodeInfo(node_id=node_id, name=name) for node_id, name in self._names.items()]

    def push_messages(self, messages: Iterable[Message]) -> list[str]:
        """Let the nodes answer at once."""
        ids = []
        for message in messages:
            self._pushed += 1
            message_id = f"message {self._pushed}"
            message.metadata.__dict__["_message_id"] = message_id  # as Flower's own grids do
            self._replies[message_id] = self._app(message, self._contexts[message.metadata.dst_node_id])
            ids.append(message_id)
        return ids

    def pull_messages(self, message_ids: Iterable[str]) -> list[Message]:
        """Return the replies, each once."""
        return [self._replies.pop(message_id) for message_id in message_ids if message_id in self._replies]

    def send_and_receive(self, messages: Iterable[Message], *, timeout: float | None = None) -> list[Message]:
        """Push messages and return the replies."""
        return self.pull_messages(self.push_messages(messages))


@contextmanager
def identity() -> Iterator[None]:
    """Let messages be made outside of a Flower run, and leave no trace of it."""
    before = TaskIdentity._run_id, TaskIdentity._node_id, TaskIdentity._task_id  # noqa: SLF001
    TaskIdentity.run_id, TaskIdentity.node_id, TaskIdentity.task_id = RUN_ID, SERVER_ID, 1
    try:
        yield
    finally:
        TaskIdentity._run_id, TaskIdentity._node_id, TaskIdentity._task_id = before  # noqa: SLF001


class Federation:
    """Centers on this machine.

    Parameters
    ----------
    centers : mapping
        Name of a center to its values: ``{group: array}`` for one variable, or ``{variable: {group: array}}``.
    k : int
        Anonymity threshold.
    allow_quantile_loss : bool
        Whether the centers answer `QuantileLoss`, which gives away single values; a real center's operator decides
        that.

    Raises
    ------
    ValueError, TypeError
        If there is no center, or the centers' values are not such mappings.

    Examples
    --------
    >>> from fed_mwu.strategies import WeightedMWU
    >>> centers = {"A": {"no": range(20), "yes": range(5, 25)}, "B": {"no": range(30), "yes": range(30)}}
    >>> federation = Federation(centers, k=10)
    >>> result = federation.run(WeightedMWU())
    >>> round(result.test.superiority, 4)
    0.5871
    """

    def __init__(
        self, centers: Mapping[str, Groups | Mapping[str, Groups]], *, k: int = 10, allow_quantile_loss: bool = False
    ) -> None:
        if not centers:
            raise ValueError("centers must hold at least one center, got none")
        check_settings(k, 0)
        self.k = k
        self._sources = {
            node_id: GroupSource(name, _by_variable(name, values), allow_quantile_loss=allow_quantile_loss)
            for node_id, (name, values) in enumerate(centers.items(), start=2)
        }
        self._app = make_app(lambda context: self._sources[context.node_id])

    @property
    def variables(self) -> tuple[str, ...]:
        """The variables of all centers, in the order in which they first appear."""
        return tuple(dict.fromkeys(v for source in self._sources.values() for v in source.values))

    @property
    def groups(self) -> tuple[str, ...]:
        """The groups of all centers, in the order in which they first appear."""
        return tuple(
            dict.fromkeys(g for source in self._sources.values() for groups in source.values.values() for g in groups)
        )

    def grid(self) -> LocalGrid:
        """Return a Grid of the centers, for a ServerApp of one's own."""
        return LocalGrid(self._app, {node_id: source.name for node_id, source in self._sources.items()})

    def run(self, strategy: FederatedStrategy) -> FederatedResult:
        """Run a strategy.

        Parameters
        ----------
        strategy : FederatedStrategy
            Its variables, groups and k, where not given, become those of the federation.

        Returns
        -------
        FederatedResult
            With `.summary()`, `.tests`, `.centers`, `.rounds` and `.bytes`.

        Raises
        ------
        TooFewCenters
            If no variable has enough centers.
        """
        strategy.with_defaults(variables=self.variables, group="group", groups=self.groups, k=self.k)
        strategy.settle = 0.0
        with identity():
            return strategy.start(grid=self.grid()).analysis


def _by_variable(name: str, values: Groups | Mapping[str, Groups]) -> Mapping[str, Groups]:
    if not isinstance(values, Mapping) or not values:
        raise TypeError(f"center {name!r} must be a mapping of group to values, or of variable to such a mapping")
    nested = [isinstance(inner, Mapping) for inner in values.values()]
    if all(nested):
        return values  # type: ignore[return-value]
    if any(nested):
        raise TypeError(f"center {name!r} mixes groups and variables: give one kind of mapping")
    return {DEFAULT_VARIABLE: values}  # type: ignore[dict-item]
