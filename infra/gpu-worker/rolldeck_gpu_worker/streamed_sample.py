"""A sample told as it is made: one line of JSON for each step's news of a sequence, and one at its end.

`{"sample": i, "tokens": […], "logprobs": […]}` …, then `{"stop_reasons": […], "weight_version": v}`, or
`{"error": {…}}`. What lacks such an end is not whole."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import AsyncGenerator, Callable
from typing import Any

from .batch import Sequence
from .errors import WorkerError


class StreamedSample:
    """The engine's thread puts news in, the event loop takes them out."""

    def __init__(self, loop: asyncio.AbstractEventLoop, num_samples: int):
        self._loop = loop
        self._told = [0] * num_samples
        self._news: asyncio.Queue[list[dict] | WorkerError] = asyncio.Queue()

    def on_step(self, sequences: list[Sequence]) -> None:
        """Engine thread."""
        lines = [line for at, s in enumerate(sequences) for line in self._since(at, s.tokens, s.logprobs)]
        if lines:
            self._post(lines)

    def on_end(self, result: dict | None, error: WorkerError | None) -> None:
        """Engine thread, once."""
        if error is not None or result is None:
            self._post(error or WorkerError("internal", "the sample ended without a result"))
            return
        made = result["sequences"]
        lines = [line for at, s in enumerate(made) for line in self._since(at, s["tokens"], s["logprobs"])]
        reasons = [sequence["stop_reason"] for sequence in made]
        self._post([*lines, {"stop_reasons": reasons, "weight_version": result["weight_version"]}])

    async def first(self) -> list[dict]:
        """@raises WorkerError while an answer's status can still say so"""
        news = await self._news.get()
        if isinstance(news, WorkerError):
            raise news
        return news

    async def lines(self, first: list[dict], close: Callable[[], None]) -> AsyncGenerator[bytes, None]:
        """@param close: called once, when the answer has ended or whoever asked has gone"""
        try:
            news: list[dict] | WorkerError = first
            while True:
                if isinstance(news, WorkerError):
                    yield _line({"error": news.body()})
                    return
                yield b"".join(_line(line) for line in news)
                if "stop_reasons" in news[-1]:
                    return
                news = await self._news.get()
        finally:
            close()

    def _since(self, at: int, tokens: list[int], logprobs: list[float]) -> list[dict]:
        told, made = self._told[at], len(tokens)
        news = [round(logprob, 7) for logprob in logprobs[told:made]]
        # A sequence whose numbers are not finite ends as an error.
        if told == made or not all(math.isfinite(logprob) for logprob in news):
            return []
        self._told[at] = made
        return [{"sample": at, "tokens": tokens[told:made], "logprobs": news}]

    def _post(self, news: list[dict] | WorkerError) -> None:
        self._loop.call_soon_threadsafe(self._news.put_nowait, news)


def _line(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":"), allow_nan=False).encode() + b"\n"
