"""Bytes of tokens of a byte-level BPE tokenizer, read from tokenizer.json: enough to find stop strings."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path


def _byte_of_character() -> dict[str, int]:
    """The byte-level alphabet: printable Latin-1 stands for itself, the other bytes for characters from 256 on."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in printable]
    return {chr(b): b for b in printable} | {chr(256 + n): byte for n, byte in enumerate(others)}


def byte_level_decoder(folder: Path) -> Callable[[int], bytes] | None:
    """A function from token id to bytes; None when the folder has no byte-level tokenizer."""
    file = folder / "tokenizer.json"
    if not file.is_file():
        return None
    raw = json.loads(file.read_text())
    decoder = raw.get("decoder") or {}
    kinds = {decoder.get("type"), *(d.get("type") for d in decoder.get("decoders", []))}
    if "ByteLevel" not in kinds:
        return None
    alphabet = _byte_of_character()
    table: dict[int, bytes] = {}
    for text, token in raw["model"]["vocab"].items():
        table[token] = bytes(alphabet[c] for c in text) if all(c in alphabet for c in text) else text.encode()
    for added in raw.get("added_tokens", []):
        table[added["id"]] = added["content"].encode()
    return lambda token: table.get(token, b"")
