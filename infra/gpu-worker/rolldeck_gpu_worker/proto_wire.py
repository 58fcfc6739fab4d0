"""Protocol Buffers' wire format, as much of it as the Tinker messages need: varints, 64-bit and length-delimited fields."""

from __future__ import annotations

import struct
from collections.abc import Iterator

from .errors import bad_input

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
_WIDTH = {FIXED64: 8, FIXED32: 4}

Value = int | bytes


def fields(message: bytes | memoryview, where: str) -> Iterator[tuple[int, Value]]:
    """(number, value) of each field in order: varints as whole numbers of 64 bits without sign, others as their bytes.

    @raises WorkerError bad_input when the message is cut or malformed"""
    view = memoryview(message)
    at = 0
    while at < len(view):
        key, at = _varint(view, at, where)
        number, kind = key >> 3, key & 7
        if kind == VARINT:
            value, at = _varint(view, at, where)
            yield number, value
            continue
        if kind == BYTES:
            length, at = _varint(view, at, where)
        elif kind in _WIDTH:
            length = _WIDTH[kind]
        else:
            raise bad_input(f"not a protobuf message: wire type {kind}", where)
        if at + length > len(view):
            raise bad_input("not a protobuf message: it is cut", where)
        yield number, bytes(view[at : at + length])
        at += length


def _varint(view: memoryview, at: int, where: str) -> tuple[int, int]:
    value, shift = 0, 0
    while at < len(view) and shift < 64:
        byte = view[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & (2**64 - 1), at
        shift += 7
    raise bad_input("not a protobuf message: a number is cut or too long", where)


def signed(value: Value) -> int:
    """A varint of int32 or int64."""
    return value - 2**64 if isinstance(value, int) and value >= 2**63 else int(value)


def _encoded_varint(value: int) -> bytes:
    out = bytearray()
    value &= 2**64 - 1
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def number_field(number: int, value: int) -> bytes:
    return _encoded_varint(number << 3 | VARINT) + _encoded_varint(value)


def bytes_field(number: int, value: bytes) -> bytes:
    return _encoded_varint(number << 3 | BYTES) + _encoded_varint(len(value)) + value


def text_field(number: int, value: str) -> bytes:
    return bytes_field(number, value.encode())


def double_field(number: int, value: float) -> bytes:
    return _encoded_varint(number << 3 | FIXED64) + struct.pack("<d", value)
