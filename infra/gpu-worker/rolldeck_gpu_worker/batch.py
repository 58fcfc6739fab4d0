"""Continuous batching over one weight snapshot: sequences join and leave between steps.

Rows [0, decoding) of the cache take one token a step; rows after them still read their prompt. Only the engine thread
touches a batch."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import torch

from .attention import CachedStep, PrefillGroup
from .kv_rows import KvRows
from .prefix_cache import PrefixCache
from .sampling import SamplingParams, draw
from .snapshots import Snapshot

# A prefill group's padded grid is at most this many times its tokens.
_PREFILL_SPREAD = 2


@dataclass(eq=False)
class Sequence:
    """One sample being made. `on_end` is called once, on the engine thread, unless the sequence is dropped."""

    prompt: np.ndarray
    params: SamplingParams
    sample: int
    on_end: Callable[[Sequence, Exception | None], None]
    tokens: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    tail: bytes = b""
    stop_reason: str = "length"
    cached: int = 0
    done: int = 0
    dropped: bool = False
    prefix_entry: int | None = None
    kept_prefix: torch.Tensor | None = None

    @property
    def known(self) -> int:
        return len(self.prompt) + len(self.tokens)

    def history(self) -> np.ndarray:
        return np.concatenate([self.prompt, np.asarray(self.tokens, np.int64)])


@dataclass(frozen=True)
class BatchLimits:
    rows: int
    # Prompt tokens read in one step, so that long prompts do not stall the rows that decode.
    prefill_tokens: int


class SampleBatch:
    """@param token_bytes: bytes of a token, for stop strings; None where the tokenizer is not byte level."""

    def __init__(
        self,
        snapshot: Snapshot,
        cache: KvRows,
        prefixes: PrefixCache,
        limits: BatchLimits,
        token_bytes: Callable[[int], bytes] | None,
    ):
        self.snapshot = snapshot
        self.cache = cache
        self.waiting: deque[Sequence] = deque()
        self.rows: list[Sequence] = []
        self._prefixes = prefixes
        self._limits = limits
        self._token_bytes = token_bytes
        self._decoding = 0
        # Prompt tokens that the last step read.
        self.read = 0

    @property
    def idle(self) -> bool:
        return not self.rows and not self.waiting

    def step(self) -> int:
        """Admits, runs the model once and draws; returns the number of tokens drawn."""
        self.read = 0
        self._leave_dropped()
        self._admit()
        if not self.rows:
            return 0
        chunks = self._chunks()
        self.read = sum(chunks[self._decoding :])
        logits = self.snapshot.weights.logits(self.cache, self._build(chunks))
        for row, length in enumerate(chunks):
            self.rows[row].done += length
        ready = [i for i, seq in enumerate(self.rows) if i < self._decoding or seq.done == len(seq.prompt)]
        self._share_prompts(ready)
        drawn = self._draw(logits, ready)
        self._settle_rows(set(ready))
        return drawn

    def _leave_dropped(self) -> None:
        if any(seq.dropped for seq in self.waiting):
            self.waiting = deque(seq for seq in self.waiting if not seq.dropped)
        for row in range(len(self.rows) - 1, -1, -1):
            if self.rows[row].dropped:
                self._remove(row)

    def _admit(self) -> None:
        """Takes waiting sequences in; twins of a prompt that is being read wait one step and then copy it."""
        reading = {seq.prompt.tobytes() for seq in self.rows[self._decoding :]}
        fresh: list[Sequence] = []
        twins: list[Sequence] = []
        room = self._limits.rows - len(self.rows)
        while self.waiting and len(fresh) < room:
            seq = self.waiting.popleft()
            key = seq.prompt.tobytes()
            if key in reading:
                twins.append(seq)
                continue
            fresh.append(seq)
            self._look_up(seq)
            if len(seq.prompt) - seq.cached > 1:
                reading.add(key)
        self.waiting.extendleft(reversed(twins))
        if not fresh:
            return
        # Similar chunk lengths beside each other keep prefill grids dense.
        fresh.sort(key=lambda seq: len(seq.prompt) - seq.cached)
        longest = max(len(seq.prompt) + seq.params.max_tokens for seq in fresh)
        self.cache.reserve(len(self.rows) + len(fresh), longest)
        for seq in fresh:
            self.rows.append(seq)
            if seq.cached:
                self.cache.put(len(self.rows) - 1, seq.kept_prefix, seq.cached)
                seq.kept_prefix = None
            seq.done = seq.cached

    def _look_up(self, seq: Sequence) -> None:
        # The last prompt token is always computed: its logits are needed.
        found = self._prefixes.find(self.snapshot.uid, seq.prompt, len(seq.prompt) - 1)
        if found is None:
            return
        entry_id, entry, seq.cached = found
        seq.kept_prefix = entry.kept
        seq.prefix_entry = entry_id if seq.cached == len(entry.tokens) else None

    def _chunks(self) -> list[int]:
        """How many tokens each row takes in this step; rows past the prefill budget take none and wait."""
        chunks = [1] * self._decoding
        left = self._limits.prefill_tokens
        for seq in self.rows[self._decoding :]:
            length = min(len(seq.prompt) - seq.done, left)
            if length == 0:
                break
            chunks.append(length)
            left -= length
        return chunks

    def _build(self, chunks: list[int]) -> CachedStep:
        device = self.snapshot.weights.flat.device
        parts, positions = [], []
        for seq, length in zip(self.rows, chunks, strict=False):
            if seq.tokens:
                parts.append(seq.tokens[-1:])
            else:
                parts.append(seq.prompt[seq.done : seq.done + length])
            positions.append(np.arange(seq.done, seq.done + length))
        lengths = np.asarray(chunks)
        ends = np.cumsum(lengths)

        def to_device(array: np.ndarray) -> torch.Tensor:
            return torch.from_numpy(np.ascontiguousarray(array)).to(device)

        seen = max((seq.done + 1 for seq in self.rows[: self._decoding]), default=0)
        mask = None
        if self._decoding:
            held = np.asarray([seq.done + 1 for seq in self.rows[: self._decoding]])
            mask = to_device((np.arange(seen)[None, :] < held[:, None])[:, None, None, :])
        return CachedStep(
            tokens=to_device(np.concatenate(parts).astype(np.int64)),
            positions=to_device(np.concatenate(positions)),
            rows=to_device(np.repeat(np.arange(len(chunks)), lengths)),
            last=to_device(ends - 1),
            decoding=self._decoding,
            decode_seen=seen,
            decode_mask=mask,
            prefill=self._prefill_groups(chunks, ends - lengths, to_device),
        )

    def _prefill_groups(self, chunks: list[int], starts: np.ndarray, to_device) -> list[PrefillGroup]:
        groups = []
        first, total = self._decoding, 0
        for row in range(self._decoding, len(chunks) + 1):
            if row < len(chunks):
                longest = max(chunks[first : row + 1])
                if longest * (row + 1 - first) <= _PREFILL_SPREAD * (total + chunks[row]) or row == first:
                    total += chunks[row]
                    continue
            if row > first:
                groups.append(self._prefill_group(first, chunks[first:row], starts[first:row], to_device))
            first, total = row, chunks[row] if row < len(chunks) else 0
        return groups

    def _prefill_group(self, row: int, chunks: list[int], starts: np.ndarray, to_device) -> PrefillGroup:
        lengths = np.asarray(chunks)
        pasts = np.asarray([seq.done for seq in self.rows[row : row + len(chunks)]])
        longest, seen = int(lengths.max()), int((pasts + lengths).max())
        columns = np.arange(longest)
        valid = columns[None, :] < lengths[:, None]
        grid = np.where(valid, starts[:, None] + columns[None, :], starts[:, None])
        # Padding queries see position 0, so that no softmax row is empty.
        reach = np.where(valid, pasts[:, None] + columns[None, :], 0)
        mask = np.arange(seen)[None, None, :] <= reach[:, :, None]
        return PrefillGroup(
            row=row,
            count=len(chunks),
            longest=longest,
            grid=to_device(grid.reshape(-1)),
            kept=to_device(np.flatnonzero(valid.reshape(-1))),
            seen=seen,
            mask=to_device(mask[:, None]),
        )

    def _share_prompts(self, ready: list[int]) -> None:
        """Keeps a finished prompt for waiting twins."""
        if not self.waiting:
            return
        wanted = {seq.prompt.tobytes() for seq in self.waiting}
        for row in ready:
            seq = self.rows[row]
            if row >= self._decoding and seq.prompt.tobytes() in wanted:
                wanted.discard(seq.prompt.tobytes())
                self._prefixes.add(self.snapshot.uid, seq.prompt, self.cache.take(row, seq.done))

    def _draw(self, logits: torch.Tensor, ready: list[int]) -> int:
        if not ready:
            return 0
        if len(ready) < logits.shape[0]:
            logits = logits[torch.as_tensor(ready, device=logits.device)]
        rows = [self.rows[row] for row in ready]
        tokens, logprobs = draw(
            logits, [seq.params for seq in rows], [seq.sample for seq in rows], [len(seq.tokens) for seq in rows]
        )
        for seq, token, logprob in zip(rows, tokens.tolist(), logprobs.tolist(), strict=True):
            seq.tokens.append(token)
            seq.logprobs.append(logprob)
        return len(rows)

    def _settle_rows(self, ready: set[int]) -> None:
        """Rows that drew a token decode from now on, before those that still read; ended ones leave."""
        boundary = self._decoding
        for row in range(self._decoding, len(self.rows)):
            if row in ready:
                if row != boundary:
                    self.rows[row], self.rows[boundary] = self.rows[boundary], self.rows[row]
                    self.cache.swap(row, boundary, max(self.rows[row].done, self.rows[boundary].done))
                boundary += 1
        self._decoding = boundary
        for row in range(self._decoding - 1, -1, -1):
            seq = self.rows[row]
            if self._has_ended(seq):
                self._keep_prefix(row, seq)
                self._remove(row)
                bad = not np.isfinite(seq.logprobs).all()
                seq.on_end(seq, FloatingPointError("the model produced logits that are not finite") if bad else None)

    def _has_ended(self, seq: Sequence) -> bool:
        token = seq.tokens[-1]
        params = seq.params
        if token in params.stop_tokens:
            seq.stop_reason = "stop"
            return True
        if params.stop_strings and self._token_bytes is not None:
            keep = max(len(stop) for stop in params.stop_strings) - 1
            text = seq.tail + self._token_bytes(token)
            if any(stop in text for stop in params.stop_strings):
                seq.stop_reason = "stop"
                return True
            seq.tail = text[-keep:] if keep else b""
        return len(seq.tokens) >= params.max_tokens

    def _keep_prefix(self, row: int, seq: Sequence) -> None:
        """Keeps what the next turn of this conversation will start with; an entry it extends is replaced."""
        if seq.prefix_entry is not None:
            self._prefixes.remove(seq.prefix_entry)
        self._prefixes.add(self.snapshot.uid, seq.history()[: seq.done], self.cache.take(row, seq.done))

    def _remove(self, row: int) -> None:
        """Closes the hole with the last decoding row, and that one's place with the last row of all."""
        if row < self._decoding:
            self._decoding -= 1
            self._fill(row, self._decoding)
            row = self._decoding
        self._fill(row, len(self.rows) - 1)
        self.rows.pop()

    def _fill(self, hole: int, source: int) -> None:
        if hole != source:
            self.rows[hole] = self.rows[source]
            self.cache.move(source, hole, self.rows[hole].done)
