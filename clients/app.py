"""The ClientApp: decode the question, let a handler answer, send the answer through the door.

Flower sends the text of an exception to the server, and a handler that returns nothing blocks its SuperNode for good.
So every path through a query ends in a reply, and what went wrong is told as a code; the details stay in the center's
own log, without the text of the exception, which may quote data.
"""

import logging
from collections.abc import Callable

from flwr.app import Context, Message, RecordDict
from flwr.clientapp import ClientApp

from fed_mwu.errors import Decline, NotPrivate
from fed_mwu.messages import decode_question, decode_table_question
from fed_mwu.quantile_messages import decode_loss_question, decode_transform_question
from fed_mwu.record_messages import encode_decline

from .handlers import describe, statistic, table
from .quantile_handlers import loss, transform
from .release import release_description, release_losses, release_statistics, release_sums, release_tables
from .source import Source, open_source

__all__ = ["app", "make_app"]

logger = logging.getLogger("fed_mwu.clients")

OpenSource = Callable[[Context], Source]
Answer = Callable[[Source, RecordDict], RecordDict]


def make_app(open_data: OpenSource) -> ClientApp:
    """Make a ClientApp whose data come from `open_data`.

    Parameters
    ----------
    open_data : callable
        Takes the Context of a node and returns its `Source`, or raises `Decline`.

    Returns
    -------
    ClientApp
        Answers the queries ``describe``, ``table``, ``statistic``, ``transform`` and ``loss``.
    """
    client = ClientApp()
    for name, answer in _ANSWERS.items():
        client.query(name)(_guarded(open_data, answer))
    return client


def _describe(source: Source, content: RecordDict) -> RecordDict:
    question = decode_question(content)
    return release_description(describe(source, question), question)


def _statistic(source: Source, content: RecordDict) -> RecordDict:
    question = decode_question(content)
    return release_statistics(statistic(source, question), question)


def _table(source: Source, content: RecordDict) -> RecordDict:
    asked = decode_table_question(content)
    return release_tables(*table(source, asked), asked)


def _transform(source: Source, content: RecordDict) -> RecordDict:
    asked = decode_transform_question(content)
    return release_sums(transform(source, asked), asked)


def _loss(source: Source, content: RecordDict) -> RecordDict:
    asked = decode_loss_question(content)
    return release_losses(loss(source, asked), asked, allowed=source.allow_quantile_loss)


_ANSWERS: dict[str, Answer] = {
    "describe": _describe,
    "table": _table,
    "statistic": _statistic,
    "transform": _transform,
    "loss": _loss,
}


def _guarded(open_data: OpenSource, answer: Answer) -> Callable[[Message, Context], Message]:
    def query(message: Message, context: Context) -> Message:
        return Message(_answer_or_decline(open_data, answer, message, context), reply_to=message)

    return query


def _answer_or_decline(open_data: OpenSource, answer: Answer, message: Message, context: Context) -> RecordDict:
    name = ""
    try:
        source = open_data(context)
        name = source.name
        return answer(source, message.content)
    except Decline as declined:
        logger.info("declined: %s", declined)
        return encode_decline(name, declined.code)
    except NotPrivate as kept_back:
        logger.error("kept back: %s", kept_back)
        return encode_decline(name, "not-private")
    except Exception as error:  # noqa: BLE001  (whatever it is, Flower would send its text to the server)
        logger.error("failed: %s at %s", type(error).__name__, _place(error))
        return encode_decline(name, "internal-error")


def _place(error: BaseException) -> str:
    """Name the line that raised: enough to find the fault, and free of data."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return f"{trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}" if trace else "?"


app = make_app(open_source)
