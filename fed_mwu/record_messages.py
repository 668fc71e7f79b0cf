"""What all answers share on the wire, and reading arrays that come from outside."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from flwr.app import Array, ArrayRecord, ConfigRecord, RecordDict
from flwr.common.serde import recorddict_to_proto
from numpy.typing import NDArray

from fed_mwu.errors import Decline, InvalidReply
from fed_mwu.exchange import DECLINES, Question, Refusal

__all__ = [
    "PROTOCOL",
    "array_of",
    "arrays_of",
    "encode_answer",
    "encode_decline",
    "read_answer",
    "size_in_bytes",
]

PROTOCOL = 1
MAX_NUMBERS = 50_000_000
_CODES = tuple(DECLINES)


def size_in_bytes(content: RecordDict) -> int:
    """Return the size of a message's content as it is sent."""
    return int(recorddict_to_proto(content).ByteSize())


def encode_decline(center: str, code: str) -> RecordDict:
    """Put the refusal of a whole message into records."""
    record = ConfigRecord({"protocol": PROTOCOL, "center": center, "declined": Refusal(code).code})
    return RecordDict({"answer": record})


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
