"""Keys and values of prompts seen before, least recently used out first.

Entries belong to one weight snapshot: an entry made by other weights is never found. A lookup compares tokens, so a
hash collision costs a miss, never a wrong prefix. Only the engine thread touches it."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

import numpy as np
import torch

# Prefixes are indexed at multiples of this many tokens.
_BLOCK = 8


@dataclass
class PrefixEntry:
    snapshot: int
    tokens: np.ndarray
    kept: torch.Tensor
    keys: list[int]

    @property
    def bytes(self) -> int:
        return self.kept.numel() * self.kept.element_size()


class PrefixCache:
    def __init__(self, budget_bytes: int):
        self._budget = budget_bytes
        self._entries: OrderedDict[int, PrefixEntry] = OrderedDict()
        self._index: dict[int, list[int]] = {}
        self._next = 0
        self.bytes = 0

    def __len__(self) -> int:
        return len(self._entries)

    def find(self, snapshot: int, tokens: np.ndarray, limit: int) -> tuple[int, PrefixEntry, int] | None:
        """The entry with the longest common prefix with `tokens`: (id, entry, length ≤ limit)."""
        best: tuple[int, PrefixEntry, int] | None = None
        for key in reversed(_keys(snapshot, tokens[:limit])):
            for entry_id in reversed(self._index.get(key, ())):
                entry = self._entries[entry_id]
                length = _common(entry.tokens, tokens, limit) if entry.snapshot == snapshot else 0
                if length and (best is None or length > best[2]):
                    best = (entry_id, entry, length)
            if best is not None:
                self._entries.move_to_end(best[0])
                return best
        return None

    def add(self, snapshot: int, tokens: np.ndarray, kept: torch.Tensor) -> None:
        keys = _keys(snapshot, tokens)
        entry = PrefixEntry(snapshot, tokens, kept, keys)
        if not keys or entry.bytes > self._budget:
            return
        entry_id, self._next = self._next, self._next + 1
        self._entries[entry_id] = entry
        self.bytes += entry.bytes
        for key in keys:
            self._index.setdefault(key, []).append(entry_id)
        while self.bytes > self._budget:
            self.remove(next(iter(self._entries)))

    def remove(self, entry_id: int) -> None:
        entry = self._entries.pop(entry_id, None)
        if entry is None:
            return
        self.bytes -= entry.bytes
        for key in entry.keys:
            ids = self._index[key]
            ids.remove(entry_id)
            if not ids:
                del self._index[key]

    def drop_snapshot(self, snapshot: int) -> None:
        for entry_id in [i for i, entry in self._entries.items() if entry.snapshot == snapshot]:
            self.remove(entry_id)


def _keys(snapshot: int, tokens: np.ndarray) -> list[int]:
    """One key per whole block, each covering everything before it."""
    keys = []
    key = snapshot
    raw = tokens.tobytes()
    width = _BLOCK * tokens.itemsize
    for start in range(0, len(raw) - width + 1, width):
        key = hash((key, raw[start : start + width]))
        keys.append(key)
    return keys


def _common(a: np.ndarray, b: np.ndarray, limit: int) -> int:
    n = min(len(a), len(b), limit)
    different = np.flatnonzero(a[:n] != b[:n])
    return int(different[0]) if different.size else n
