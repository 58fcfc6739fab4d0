"""Order and idempotency of one model's training requests. Lives on the event loop's thread.

Requests carry a contiguous `seq_id` from 1. A number seen before is a retry: with the same payload it gets the first
one's request id, with another one a conflict. A number that is too high waits for those before it."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from dataclasses import dataclass

from .errors import WorkerError

_KEPT = 512


@dataclass
class JournalEntry:
    seq_id: int
    kind: str
    digest: str
    request_id: str


class StepJournal:
    """@param gap_wait_s: how long a request waits for missing numbers before it is refused."""

    def __init__(self, gap_wait_s: float):
        self.last = 0
        self._gap_wait_s = gap_wait_s
        self._entries: OrderedDict[int, JournalEntry] = OrderedDict()
        self._moved = asyncio.Event()

    async def wait_turn(self, seq_id: int) -> None:
        """Returns when `seq_id` is the next number or an old one. @raises WorkerError sequence_gap"""
        deadline = asyncio.get_running_loop().time() + self._gap_wait_s
        while seq_id > self.last + 1:
            left = deadline - asyncio.get_running_loop().time()
            if left <= 0:
                raise WorkerError("sequence_gap", f"seq_id {seq_id} came, {self.last + 1} is expected", "seq_id")
            moved = self._moved
            try:
                await asyncio.wait_for(moved.wait(), left)
            except asyncio.TimeoutError:
                continue

    def find(self, seq_id: int, kind: str, digest: str) -> JournalEntry | None:
        """The entry of a retry, None for the next number. @raises WorkerError conflict for another payload."""
        if seq_id == self.last + 1:
            return None
        entry = self._entries.get(seq_id)
        if entry is None:
            raise WorkerError("conflict", f"seq_id {seq_id} is too old to be replayed", "seq_id")
        if (entry.kind, entry.digest) != (kind, digest):
            raise WorkerError("conflict", f"seq_id {seq_id} was used by another {entry.kind} request", "seq_id")
        return entry

    def record(self, seq_id: int, kind: str, digest: str, request_id: str) -> None:
        """Writes the entry before its work is queued."""
        self.last = seq_id
        self._entries[seq_id] = JournalEntry(seq_id, kind, digest, request_id)
        while len(self._entries) > _KEPT:
            self._entries.popitem(last=False)
        moved, self._moved = self._moved, asyncio.Event()
        moved.set()

    def tail(self, count: int = 64) -> list[dict]:
        """The newest entries, for a checkpoint."""
        newest = list(self._entries.values())[-count:]
        return [{"seq_id": e.seq_id, "kind": e.kind, "digest": e.digest} for e in newest]
