"""Server-sent events: a snapshot of the worker every second and at once after each update."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncGenerator, Callable


class LiveEvents:
    def __init__(self) -> None:
        self._changed = asyncio.Event()
        self._measured = (time.monotonic(), 0, 0.0)

    def rate(self, tokens: int) -> float:
        """Tokens per second from a running total, renewed at most every half second."""
        at, before, rate = self._measured
        now = time.monotonic()
        if now - at >= 0.5:
            rate = round((tokens - before) / (now - at), 1)
            self._measured = (now, tokens, rate)
        return rate

    def changed(self) -> None:
        """Wakes every listener. Loop thread."""
        event, self._changed = self._changed, asyncio.Event()
        event.set()

    async def stream(self, snapshot: Callable[[], dict], stopped: asyncio.Event) -> AsyncGenerator[bytes, None]:
        while not stopped.is_set():
            yield f"event: state\ndata: {json.dumps(snapshot())}\n\n".encode()
            try:
                await asyncio.wait_for(self._changed.wait(), 1.0)
            except asyncio.TimeoutError:
                continue
