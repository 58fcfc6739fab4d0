"""Results that clients fetch with retrieve_future. Lives on the event loop's thread.

A finished result is kept as encoded bytes until its memory is needed; asking for one that was dropped gives 410, the
protocol's word for "send the original request again" (which the journal answers or redoes)."""

from __future__ import annotations

import asyncio
import json
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .errors import WorkerError, as_worker_error

_KEPT_RESULTS = 20_000


@dataclass
class FutureEntry:
    request_id: str
    model_id: str | None
    done: asyncio.Future
    cancel: Callable[[], None] | None = None
    is_sample: bool = False
    # Set when done: the encoded result, or the error.
    result: bytes | None = None
    error: WorkerError | None = None


class FutureTable:
    """@param boot_id: part of every id, so that ids of another process are told from unknown ones."""

    def __init__(self, boot_id: str, budget_bytes: int):
        self._boot_id = boot_id
        self._budget = budget_bytes
        self._count = 0
        self._pending: dict[str, FutureEntry] = {}
        self._finished: OrderedDict[str, FutureEntry] = OrderedDict()
        self._bytes = 0
        self._loop = asyncio.get_running_loop()

    def create(self, model_id: str | None = None) -> FutureEntry:
        self._count += 1
        request_id = f"r-{self._boot_id}-{self._count}"
        entry = FutureEntry(request_id, model_id, self._loop.create_future())
        self._pending[request_id] = entry
        return entry

    def settle_from_engine(self, entry: FutureEntry, result: Any, error: WorkerError | None) -> None:
        """Any thread: encodes the result there and hands it to the loop."""
        encoded = None
        if error is None:
            try:
                encoded = json.dumps(result, separators=(",", ":"), allow_nan=False).encode()
            except (TypeError, ValueError) as cause:
                error = as_worker_error(cause)
        self._loop.call_soon_threadsafe(self.settle, entry, encoded, error)

    def settle(self, entry: FutureEntry, result: bytes | None, error: WorkerError | None) -> None:
        if entry.done.done():
            return
        entry.result, entry.error, entry.cancel = result, error, None
        entry.done.set_result(None)
        self._pending.pop(entry.request_id, None)
        self._finished[entry.request_id] = entry
        self._bytes += len(result or b"")
        while self._bytes > self._budget or len(self._finished) > _KEPT_RESULTS:
            _, oldest = self._finished.popitem(last=False)
            self._bytes -= len(oldest.result or b"")

    def get(self, request_id: str) -> FutureEntry:
        """@raises WorkerError 410 for a result that is gone, 404 for an id that this worker can not have given."""
        entry = self._pending.get(request_id) or self._finished.get(request_id)
        if entry is not None:
            return entry
        if request_id.startswith("r-"):
            raise WorkerError("unknown_model", "this result is no longer kept: send the request again", status=410)
        raise WorkerError("unknown_model", "no such request", "request_id")

    def has(self, request_id: str) -> bool:
        return request_id in self._pending or request_id in self._finished

    def pending_of(self, model_id: str) -> list[FutureEntry]:
        return [entry for entry in self._pending.values() if entry.model_id == model_id]
