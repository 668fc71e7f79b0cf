"""What can go wrong, as one short hierarchy.

Every message says what is wrong, what is accepted and what to do. Errors that may be raised at a center carry only
rules, parameter names and thresholds: never a value of the data, a count of patients or a path.
"""

__all__ = [
    "BelowK",
    "Decline",
    "FedMWUError",
    "InvalidReply",
    "NoValues",
    "NotPrivate",
    "OutsideEnds",
    "RunConfigError",
    "TooFewCenters",
]


class FedMWUError(Exception):
    """Base of every error that fed_mwu defines."""


class NotPrivate(FedMWUError):
    """Something about to leave a center would break the K-anonymity rule; it was kept back."""


class BelowK(FedMWUError, ValueError):
    """A group of a center has some values, but fewer than K: the center can release nothing about it.

    Parameters
    ----------
    group : int
        Position of the group; its size is not told.
    k : int
        The threshold.
    """

    def __init__(self, group: int, k: int) -> None:
        super().__init__(f"group {group} has fewer than k={k} values; ask for a smaller k or leave this center out")
        self.group = group
        self.k = k


class NoValues(FedMWUError, ValueError):
    """No group of a center has any value."""


class OutsideEnds(FedMWUError, ValueError):
    """Values that the ends of a table cannot hold."""


class Decline(FedMWUError):
    """A center does not answer a question; `code` names the rule, the text explains it.

    Parameters
    ----------
    code : str
        One of the codes of `fed_mwu.exchange.DECLINES`.
    detail : str
        What the rule says about this request: names that the request itself contained and thresholds, never data.
    """

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(f"{code}: {detail}")
        self.code = code
        self.detail = detail


class InvalidReply(FedMWUError):
    """A center's reply contradicts itself, the request or what the center announced before."""


class TooFewCenters(FedMWUError):
    """Fewer centers than `min_centers` can contribute, so there is no federated result.

    Parameters
    ----------
    message : str
    result : FederatedResult
        What each center did.
    """

    def __init__(self, message: str, result: object) -> None:
        super().__init__(message)
        self.result = result


class RunConfigError(FedMWUError, ValueError):
    """A value of the run config is not accepted; the message lists what is."""
