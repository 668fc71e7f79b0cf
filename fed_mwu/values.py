"""The one place where a user's data become numbers."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["real_values"]

_WHOLE = "biu"


def real_values(values: ArrayLike, name: str) -> NDArray[np.float64] | NDArray[np.int64]:
    """Return one-dimensional data as float64, or as int64 where they are whole numbers: float64 may round those.

    Parameters
    ----------
    values : array_like of shape (n,)
        Numbers of any real type, bool, or text and objects that stand for numbers; None and masked entries become NaN.
    name : str
        How an error calls the data.

    Returns
    -------
    ndarray of shape (n,)

    Raises
    ------
    TypeError
        If the data are complex numbers, dates, or something that stands for no number.
    ValueError
        If they have not exactly one dimension. Errors never quote data.
    """
    if isinstance(values, np.ma.MaskedArray):
        numbers = real_values(values.compressed() if values.ndim == 1 else values.data, name)
        if not np.ma.getmaskarray(values).any():
            return numbers
        filled = np.full(values.shape, np.nan)
        filled[~np.ma.getmaskarray(values)] = numbers
        return filled
    try:
        array = np.asarray(values)
    except ValueError:  # ragged lists, whose message may quote data
        raise ValueError(f"{name} must be one-dimensional, got a ragged sequence") from None
    if array.ndim != 1:
        raise ValueError(f"{name} must be one-dimensional, got {array.ndim} dimensions")
    if array.dtype.kind in _WHOLE:
        return _whole_numbers(array)
    if array.dtype.kind not in "fUSO":
        raise TypeError(f"{name} must hold real numbers, got dtype {array.dtype}")
    if array.dtype.kind == "O" and any(isinstance(value, (complex, np.datetime64, np.timedelta64)) for value in array):
        raise TypeError(f"{name} must hold real numbers, got complex numbers or dates")
    try:
        return array.astype(np.float64, copy=False)
    except Exception:  # noqa: BLE001 - whatever an object's own conversion raises may quote data
        raise TypeError(f"{name} must hold real numbers, got something that stands for no number") from None


def _whole_numbers(array: NDArray[np.bool_] | NDArray[np.integer]) -> NDArray[np.float64] | NDArray[np.int64]:
    if array.dtype == np.uint64 and array.size and int(array.max()) >= 2**63:
        return array.astype(np.float64)
    return array.astype(np.int64, copy=False)
