"""What can go wrong between a trainer and Rolldeck. Every message says what to change."""

from __future__ import annotations


class BridgeError(RuntimeError):
    """Any error of this package."""


class InputBatchError(BridgeError):
    """The trainer's batch can not be asked for; the message names the field."""


class ApiError(BridgeError):
    """Rolldeck refused a request. `status` is HTTP's, `detail` is the problem's own text with its fields."""

    def __init__(self, what: str, status: int, detail: str):
        super().__init__(f"{what}: {status} {detail}")
        self.status = status
        self.detail = detail


class UnreachableError(BridgeError):
    """Rolldeck did not answer for as long as the bridge may wait; the cause is the last failure."""


class RunEndedError(BridgeError):
    """The run is over, so nothing more will be sampled for it."""


class BatchError(BridgeError):
    """The batch that came back is not the one that was asked for, or can not be trained."""
