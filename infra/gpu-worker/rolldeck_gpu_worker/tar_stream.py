"""A tar as parts, made as they are asked for. Invariants: it is never whole, neither in memory nor on disk; its length is known
before the first part; asked twice, it gives the same bytes."""

from __future__ import annotations

import hashlib
import tarfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from .errors import WorkerError

# Bytes of a part, at most about.
PART_BYTES = 1 << 20


@dataclass(frozen=True)
class TarEntry:
    """A file of a tar; `parts` begins anew with each call."""

    name: str
    size: int
    parts: Callable[[], Iterator[bytes]]


def bytes_entry(name: str, content: bytes) -> TarEntry:
    return TarEntry(name, len(content), lambda: iter((content,)))


def file_entry(name: str, path: Path) -> TarEntry:
    """A file as it is on disk."""

    def parts() -> Iterator[bytes]:
        with open(path, "rb") as file:
            while part := file.read(PART_BYTES):
                yield part

    return TarEntry(name, path.stat().st_size, parts)


class TarStream:
    def __init__(self, entries: Sequence[TarEntry]):
        self._entries = entries
        blocks = sum(len(_head(entry)) + entry.size + _padding(entry.size) for entry in entries)
        self._end = 2 * tarfile.BLOCKSIZE
        self._end += -(blocks + self._end) % tarfile.RECORDSIZE
        self.length = blocks + self._end

    def parts(self) -> Iterator[bytes]:
        """@raises WorkerError conflict when a file changed its size under it"""
        for entry in self._entries:
            yield _head(entry)
            given = 0
            for part in entry.parts():
                given += len(part)
                yield part
            if given != entry.size:
                raise WorkerError("conflict", f"{entry.name} changed while it was exported", "path")
            yield bytes(_padding(entry.size))
        yield bytes(self._end)

    def hashed(self, digest: hashlib._Hash) -> Iterator[int]:
        """The same walk for its digest alone; gives the bytes seen with each part, so that a caller may stop."""
        for part in self.parts():
            digest.update(part)
            yield len(part)


def _head(entry: TarEntry) -> bytes:
    info = tarfile.TarInfo(entry.name)
    info.size, info.mode = entry.size, 0o644
    return info.tobuf(tarfile.PAX_FORMAT)


def _padding(size: int) -> int:
    return -size % tarfile.BLOCKSIZE
