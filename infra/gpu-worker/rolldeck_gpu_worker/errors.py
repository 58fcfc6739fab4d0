"""The worker's one error type. Invariant: whatever leaves the worker as a failure is a WorkerError with a code of
`packages/contracts/src/wire/tinker.ts`; anything else becomes `internal` at the boundary, with its cause kept."""

from __future__ import annotations

_STATUS = {
    "bad_input": 422,
    "unknown_model": 404,
    "conflict": 409,
    "fenced": 409,
    "sequence_gap": 409,
    "step_mismatch": 409,
    "busy": 429,
    "oom": 500,
    "no_space": 507,
    "cancelled": 409,
    "unauthorised": 401,
    "too_large": 413,
    "internal": 500,
}


class WorkerError(Exception):
    """A failure with a stable code. `field` names the request field that is wrong, in dotted form."""

    def __init__(
        self,
        code: str,
        detail: str,
        field: str | None = None,
        status: int | None = None,
        retry_after_s: int | None = None,
    ):
        super().__init__(detail)
        self.code = code
        self.detail = detail
        self.field = field
        self.status = status if status is not None else _STATUS[code]
        self.retry_after_s = retry_after_s

    def body(self) -> dict:
        """The JSON body that goes with the HTTP status."""
        return {"detail": self.detail, "code": self.code, "field": self.field}

    def future_body(self) -> dict:
        """The body of a future that failed: the protocol's `{error, category}` plus our code."""
        category = "server" if self.code in ("internal", "oom", "no_space") else "user"
        return {"error": self.detail, "category": category, **self.body()}


def bad_input(detail: str, field: str | None = None) -> WorkerError:
    return WorkerError("bad_input", detail, field)


def as_worker_error(error: BaseException) -> WorkerError:
    """Types an unexpected exception; the original stays reachable as the cause."""
    if isinstance(error, WorkerError):
        return error
    wrapped = WorkerError("internal", f"{type(error).__name__}: {error}"[:500])
    wrapped.__cause__ = error
    return wrapped
