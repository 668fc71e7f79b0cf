"""One message to a center, and what comes back for it."""

from dataclasses import dataclass

from flwr.app import Message, RecordDict

from fed_mwu.exchange import Question

from .roster import Center

__all__ = ["Request", "failure"]

# Flower's own codes (FLOWER.md); the text that comes with them may hold a traceback and is not looked at.
_FLOWER_ERRORS = {
    1: "its app did not load",
    2: "its app failed",
    3: "the message expired",
    5: "the node is not available",
    8: "its process died",
}


@dataclass(frozen=True, slots=True)
class Request:
    """One message to a center: the action, its content, and the question that the answer must fit.

    `asked` is the question with what else it brings along, where a strategy needs that to read the answer.
    """

    center: Center
    action: str
    content: RecordDict
    question: Question
    asked: object = None


def failure(reply: Message) -> str:
    """Tell in our own words what Flower's error in a reply means."""
    return _FLOWER_ERRORS.get(reply.error.code, f"Flower's error {reply.error.code}")
