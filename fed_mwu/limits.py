"""Where released limits stand: inside the gaps between values, never on a value.

An interior limit is ``w * a + (1 - w) * v`` with ``a`` the largest value of a bin, ``v`` the smallest of the next one
and ``w`` in (0, 1) (paper, "Federated binning"; METHODS 3). The paper draws ``w`` at random. Fresh randomness would
let a server that repeats its query watch the limit sweep the gap and read off both values, so here ``w`` is a keyed
pseudo-random function of the pair ``(a, v)``: however often the server asks, it learns one point. The function is
AES-256 on the 16 bytes of the pair, under a key derived with HMAC-SHA256 from what the center alone knows and the
column's identity. Not promised: secrecy of the limits under `DEFAULT_KEY`, which is public and serves simulations.
"""

import hmac
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numpy.typing import NDArray

from fed_mwu.errors import OutsideEnds

__all__ = ["DEFAULT_KEY", "ENDS", "OPEN", "Ends", "interior_limits"]

DEFAULT_KEY = b"fed_mwu: public key for simulations"
ENDS = ("open", "buffer", "natural")
_LARGEST = float(np.finfo(np.float64).max)


@dataclass(frozen=True, slots=True)
class Ends:
    """Where the first and the last limit of a table stand (paper, "Federated binning"; METHODS 3).

    Use `Ends.open`, `Ends.buffer` or `Ends.natural` to make one.
    """

    name: Literal["open", "buffer", "natural"]
    low: float = -np.inf
    high: float = np.inf

    def __post_init__(self) -> None:
        if self.name not in ENDS:
            raise ValueError(f"ends must be one of {ENDS}, got {self.name!r}")
        if not self.low < self.high:
            raise ValueError(f"natural ends need low < high, got low={self.low!r} and high={self.high!r}")

    @classmethod
    def open(cls) -> "Ends":
        """Minus and plus infinity: the default, and the only ends that say nothing about the extreme values."""
        return cls("open")

    @classmethod
    def buffer(cls) -> "Ends":
        """One mean gap of the extreme bin beyond the extreme value.

        A server that asks with a large K comes close to the extreme value itself, so this is not the default.
        """
        return cls("buffer")

    @classmethod
    def natural(cls, low: float, high: float) -> "Ends":
        """Limits of the variable by its nature, for example 0 and infinity for a weight.

        Parameters
        ----------
        low, high : float
            ``low < high``; either may be infinite. Data outside are an error at the center, never clipped.
        """
        return cls("natural", float(low), float(high))

    def check(self, smallest: float, largest: float) -> None:
        """Refuse data that these ends cannot hold.

        Raises
        ------
        OutsideEnds
            A `ValueError`: natural ends and a value outside; buffer ends and an infinite value. It quotes no data.
        """
        if self.name == "natural" and not (self.low <= smallest and largest <= self.high):
            raise OutsideEnds(
                f"natural ends [{self.low:g}, {self.high:g}] must hold all values; use wider or open ends"
            )
        if self.name == "buffer" and not (np.isfinite(smallest) and np.isfinite(largest)):
            raise OutsideEnds("buffer ends need finite values, some are infinite; use open ends")

    def lower(self, extreme: NDArray[np.float64]) -> float:
        """Return the first limit, given the sorted values of all groups in the first bin."""
        return _beyond(float(extreme[0]), -_mean_gap(extreme)) if self.name == "buffer" else self.low

    def upper(self, extreme: NDArray[np.float64]) -> float:
        """Return the last limit, given the sorted values of all groups in the last bin."""
        return _beyond(float(extreme[-1]), _mean_gap(extreme)) if self.name == "buffer" else self.high


OPEN = Ends.open()


def _mean_gap(values: NDArray[np.float64]) -> float:
    gaps = max(values.size - 1, 1)
    # Divided before the difference is taken: the range of extreme data overflows.
    return float(values[-1]) / gaps - float(values[0]) / gaps


def _beyond(value: float, step: float) -> float:
    """Move `value` by `step`; a step lost to rounding still moves it, so that the limit is no data value."""
    if step == 0.0:
        return value + 0.0
    moved = value + step
    return moved if moved != value else float(np.nextafter(value, np.copysign(np.inf, step)))


@lru_cache(maxsize=4096)
def _cipher_key(key: bytes) -> bytes:
    return hmac.digest(key, b"fed_mwu limits 1", "sha256")


def _weights(left: NDArray[np.float64], right: NDArray[np.float64], key: bytes) -> NDArray[np.float64]:
    """Return one pseudo-random number in (0, 1) for each pair; equal pairs and keys give equal numbers.

    AES rather than one HMAC per pair: a table of 50,000 limits takes 1 ms instead of 100 ms. Each block is one pair, so
    the mode without chaining is the right one here: equal pairs are meant to give equal numbers.
    """
    pairs = np.column_stack((left, right)).astype("<f8")
    encryptor = Cipher(algorithms.AES(_cipher_key(key)), modes.ECB()).encryptor()  # noqa: S305
    words = np.frombuffer(encryptor.update(pairs.tobytes()), dtype="<u8")[::2]
    return ((words >> np.uint64(11)).astype(np.float64) + 0.5) / 2.0**53


def interior_limits(left: NDArray[np.float64], right: NDArray[np.float64], *, key: bytes) -> NDArray[np.float64]:
    """Return a limit strictly inside each gap.

    Parameters
    ----------
    left, right : ndarray of float, shape (J,)
        The gaps: largest value of a bin and smallest of the next one, ``left < right``. May be infinite: an infinite
        side counts as the largest finite number.
    key : bytes
        Secret of the center and identity of the column.

    Returns
    -------
    ndarray of float, shape (J,)
        ``left < limit < right``; `left` itself only where no number lies between the two.
    """
    left, right = left + 0.0, right + 0.0  # -0.0 and 0.0 are one value and must give one limit
    with np.errstate(over="ignore"):  # beyond the largest number comes infinity, which is meant
        inner_left = np.where(np.isneginf(left), -_LARGEST, np.nextafter(left, np.inf))
        inner_right = np.where(np.isposinf(right), _LARGEST, np.nextafter(right, -np.inf))
    w = _weights(left, right, key)
    limit = w * np.maximum(left, -_LARGEST) + (1.0 - w) * np.minimum(right, _LARGEST)
    limit = np.minimum(np.maximum(limit, inner_left), inner_right)
    return np.where(inner_left > inner_right, left, limit) + 0.0
