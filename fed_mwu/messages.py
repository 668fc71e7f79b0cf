"""Questions and answers <-> Flower records: the only module of this package that imports flwr.

The wire, protocol 1. A question is a ``ConfigRecord`` named "question"; a table question has an ``ArrayRecord``
"tables" too. An answer is a ``ConfigRecord`` "answer" (protocol, center, and "declined" if nothing is answered) and
an ``ArrayRecord`` "values" with one entry per variable, in the order of the question. Numbers are float64, sizes and
codes int64. Tables are ragged: "offsets" cuts "limits" into variables, an empty piece is no table; "counts" holds G
times (limits - 1) numbers for each. Everything is checked when it is read: unknown shapes, types or codes raise
`InvalidReply`.
"""

from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np
from flwr.app import Array, ArrayRecord, ConfigRecord, RecordDict
from flwr.common.serde import recorddict_to_proto
from numpy.typing import NDArray

from fed_mwu.errors import Decline, InvalidReply
from fed_mwu.exchange import (
    DECLINES,
    Counts,
    Description,
    Question,
    Refusal,
    StatisticAnswer,
    TableAnswer,
    TableQuestion,
)
from fed_mwu.limits import Ends
from fed_mwu.ragged import pack_tables, unpack_tables
from fed_mwu.ranks import CenterStatistic
from fed_mwu.table import Table

__all__ = [
    "PROTOCOL",
    "array_of",
    "arrays_of",
    "decode_description",
    "decode_question",
    "decode_statistic_answer",
    "decode_table_answer",
    "decode_table_question",
    "decode_tables",
    "encode_answer",
    "encode_decline",
    "encode_description",
    "encode_question",
    "encode_statistic_answer",
    "encode_table_answer",
    "encode_table_question",
    "encode_tables",
    "read_answer",
    "size_in_bytes",
]

PROTOCOL = 1
MAX_NUMBERS = 50_000_000
_CODES = tuple(DECLINES)
_QUESTION_KEYS = {"protocol", "variables", "group", "groups", "k", "ends", "low", "high", "max-bins"}


def size_in_bytes(content: RecordDict) -> int:
    """Return the size of a message's content as it is sent."""
    return int(recorddict_to_proto(content).ByteSize())


# --- questions -------------------------------------------------------------------------------------------------------


def encode_question(question: Question) -> RecordDict:
    """Put a question into records."""
    record = ConfigRecord(
        {
            "protocol": PROTOCOL,
            "variables": list(question.variables),
            "group": question.group,
            "groups": list(question.groups),
            "k": question.k,
            "ends": question.ends.name,
            "low": question.ends.low,
            "high": question.ends.high,
            "max-bins": question.max_bins,
        }
    )
    return RecordDict({"question": record})


def decode_question(content: RecordDict) -> Question:
    """Read a question at a center.

    Raises
    ------
    Decline
        "wrong-version" or "bad-request".
    """
    record = content.config_records.get("question")
    if record is None:
        raise Decline("bad-request", "there is no question in this message")
    if record.get("protocol") != PROTOCOL:
        raise Decline("wrong-version", f"this center speaks protocol {PROTOCOL}")
    if set(record) != _QUESTION_KEYS:
        raise Decline("bad-request", f"a question has the keys {sorted(_QUESTION_KEYS)}")
    fields = cast(dict[str, Any], dict(record))
    if not (isinstance(fields["variables"], list) and isinstance(fields["groups"], list)):
        raise Decline("bad-request", "variables and groups are lists")
    try:
        return Question(
            variables=tuple(fields["variables"]),
            group=fields["group"],
            groups=tuple(fields["groups"]),
            k=fields["k"],
            ends=Ends(fields["ends"], fields["low"], fields["high"]),
            max_bins=fields["max-bins"],
        )
    except (TypeError, ValueError) as error:
        raise Decline("bad-request", str(error)) from None


def encode_table_question(asked: TableQuestion) -> RecordDict:
    """Put a question and the tables so far into records."""
    content = encode_question(asked.question)
    content["tables"] = encode_tables(asked.question.variables, asked.tables)
    return content


def decode_table_question(content: RecordDict) -> TableQuestion:
    """Read a question and the tables that it brings along, at a center.

    Raises
    ------
    Decline
        "wrong-version" or "bad-request".
    """
    question = decode_question(content)
    record = content.array_records.get("tables")
    if record is None:
        raise Decline("bad-request", "there are no tables in this message")
    try:
        return TableQuestion(question, decode_tables(record, question.variables, len(question.groups)))
    except InvalidReply as error:
        raise Decline("bad-request", str(error)) from None


# --- tables ----------------------------------------------------------------------------------------------------------


def encode_tables(variables: Sequence[str], tables: Mapping[str, Table]) -> ArrayRecord:
    """Put the tables of some of the variables into one ragged record."""
    return arrays_of(**pack_tables(variables, tables))


def decode_tables(record: ArrayRecord, variables: Sequence[str], n_groups: int) -> dict[str, Table]:
    """Read tables; the variables that have none are left out.

    Raises
    ------
    InvalidReply
        If shapes, types or values are not those of tables.
    """
    offsets = array_of(record, "offsets", np.int64, len(variables) + 1)
    limits = array_of(record, "limits", np.float64, None)
    counts = array_of(record, "counts", np.float64, None)
    return unpack_tables(offsets, limits, counts, variables, n_groups)


# --- answers ---------------------------------------------------------------------------------------------------------


def encode_decline(center: str, code: str) -> RecordDict:
    """Put the refusal of a whole message into records."""
    record = ConfigRecord({"protocol": PROTOCOL, "center": center, "declined": Refusal(code).code})
    return RecordDict({"answer": record})


def encode_description(answer: Description, question: Question) -> RecordDict:
    """Put the sizes of a center into records."""
    none = Counts((0,) * len(question.groups), (0,) * len(question.groups))
    counts = [answer.counts.get(variable, none) for variable in question.variables]
    return encode_answer(
        answer.center,
        question,
        answer.refusals,
        sizes=np.array([c.sizes for c in counts], dtype=np.int64),
        missing=np.array([c.missing for c in counts], dtype=np.int64),
    )


def decode_description(content: RecordDict, question: Question) -> Description:
    """Read the sizes of a center at the server; raises `Decline` or `InvalidReply`."""
    center, values, refusals = read_answer(content, question)
    shape = (len(question.variables), len(question.groups))
    sizes = array_of(values, "sizes", np.int64, shape).tolist()
    missing = array_of(values, "missing", np.int64, shape).tolist()
    counts = {
        variable: Counts(tuple(n), tuple(m))
        for variable, n, m in zip(question.variables, sizes, missing, strict=True)
        if variable not in refusals
    }
    return Description(center, counts, refusals)


def encode_table_answer(answer: TableAnswer, question: Question) -> RecordDict:
    """Put joined tables into records."""
    content = encode_answer(answer.center, question, answer.refusals)
    content["tables"] = encode_tables(question.variables, answer.tables)
    return content


def decode_table_answer(content: RecordDict, question: Question) -> TableAnswer:
    """Read joined tables at the server; raises `Decline` or `InvalidReply`."""
    center, _, refusals = read_answer(content, question)
    record = content.array_records.get("tables")
    if record is None:
        raise InvalidReply("there are no tables in this answer")
    tables = decode_tables(record, question.variables, len(question.groups))
    if set(tables) | set(refusals) != set(question.variables) or set(tables) & set(refusals):
        raise InvalidReply("each variable must come with either a table or a refusal")
    return TableAnswer(center, tables, refusals)


def encode_statistic_answer(answer: StatisticAnswer, question: Question) -> RecordDict:
    """Put the statistics of a center into records."""
    none = CenterStatistic(0.0, 0.0, 0.0, 0.0)
    statistics = [answer.statistics.get(variable, none) for variable in question.variables]
    missing = [answer.missing.get(variable, (0,) * len(question.groups)) for variable in question.variables]
    return encode_answer(
        answer.center,
        question,
        answer.refusals,
        statistics=np.array([[c.n, c.m, c.u, c.variance] for c in statistics], dtype=np.float64),
        missing=np.array(missing, dtype=np.int64),
    )


def decode_statistic_answer(content: RecordDict, question: Question) -> StatisticAnswer:
    """Read the statistics of a center at the server; raises `Decline` or `InvalidReply`."""
    center, values, refusals = read_answer(content, question)
    rows = array_of(values, "statistics", np.float64, (len(question.variables), 4)).tolist()
    missing = array_of(values, "missing", np.int64, (len(question.variables), len(question.groups))).tolist()
    statistics = {}
    for variable, row in zip(question.variables, rows, strict=True):
        if variable not in refusals:
            try:
                statistics[variable] = CenterStatistic(*row)
            except ValueError as error:
                raise InvalidReply(f"a statistic contradicts itself: {error}") from None
    kept = {v: tuple(m) for v, m in zip(question.variables, missing, strict=True) if v in statistics}
    return StatisticAnswer(center, statistics, kept, refusals)


def encode_answer(
    center: str, question: Question, refusals: Mapping[str, Refusal], **values: NDArray[np.float64] | NDArray[np.int64]
) -> RecordDict:
    """Put what every answer has into records: protocol, center, refusals, and arrays of one entry per variable."""
    refused = np.zeros((len(question.variables), 2), dtype=np.int64)
    for row, variable in zip(refused, question.variables, strict=True):
        if variable in refusals:
            row[:] = _CODES.index(refusals[variable].code) + 1, refusals[variable].group
    record = ConfigRecord({"protocol": PROTOCOL, "center": center})
    return RecordDict({"answer": record, "values": arrays_of(refused=refused, **values)})


def read_answer(content: RecordDict, question: Question) -> tuple[str, ArrayRecord, dict[str, Refusal]]:
    """Read what every answer has; raises `Decline` for a refusal of the whole message, `InvalidReply` for nonsense."""
    record = content.config_records.get("answer")
    if record is None or not isinstance(center := record.get("center"), str):
        raise InvalidReply("there is no answer in this message")
    if record.get("protocol") != PROTOCOL:
        raise InvalidReply(f"the answer speaks protocol {record.get('protocol')!r}, this server {PROTOCOL}")
    if "declined" in record:
        code = record["declined"]
        if not isinstance(code, str) or code not in _CODES:
            raise InvalidReply("the answer declines for an unknown reason")
        raise Decline(code, DECLINES[code])
    values = content.array_records.get("values")
    if values is None:
        raise InvalidReply("there are no values in this answer")
    refused = array_of(values, "refused", np.int64, (len(question.variables), 2))
    if (refused[:, 0] < 0).any() or (refused[:, 0] > len(_CODES)).any():
        raise InvalidReply("the answer refuses a variable for an unknown reason")
    refusals = {
        variable: Refusal(_CODES[code - 1], group)
        for variable, (code, group) in zip(question.variables, refused.tolist(), strict=True)
        if code
    }
    return center, values, refusals


def arrays_of(**values: NDArray[np.float64] | NDArray[np.int64]) -> ArrayRecord:
    """Put arrays into a record."""
    return ArrayRecord({name: Array(array) for name, array in values.items()})


def array_of(
    record: ArrayRecord, name: str, dtype: type[Any], shape: int | tuple[int | None, ...] | None
) -> NDArray[Any]:
    """Read one array.

    Parameters
    ----------
    shape : int, tuple, or None
        What the array must have; None stands for any length, alone for any one-dimensional array.

    Raises
    ------
    InvalidReply
        If the array is missing, cannot be read, or has another type or shape.
    """
    if name not in record:
        raise InvalidReply(f"there is no array {name!r}, only {sorted(record)}")
    try:
        array = record[name].numpy()
    except Exception:  # noqa: BLE001  (whatever numpy finds wrong with foreign bytes)
        raise InvalidReply(f"the array {name!r} cannot be read") from None
    wanted = shape if isinstance(shape, tuple) else (shape,)
    fits = len(wanted) == array.ndim and all(w is None or w == n for w, n in zip(wanted, array.shape, strict=True))
    if array.dtype != dtype or not fits or array.size > MAX_NUMBERS:
        raise InvalidReply(f"the array {name!r} must be {np.dtype(dtype).name} of shape {wanted}")
    return array
