"""The Tinker protocol's binary messages, to and from what the JSON wire carries.

ForwardBackwardRequest comes in; SampleResponse and ForwardBackwardOutput go out. Field numbers are the protocol's own; unknown
fields are skipped, as protobuf's rules have it, but a tensor or chunk of a kind that is not supported is refused."""

from __future__ import annotations

import json
import struct
from typing import Any

import numpy as np

from .errors import bad_input
from .proto_wire import Value, bytes_field, double_field, fields, number_field, signed, text_field

PROTO_TYPE = "application/x-protobuf"
_FLOAT32, _INT64, _INT32 = 1, 2, 3
_DTYPES = {
    _FLOAT32: ("float32", np.dtype("<f4")),
    _INT64: ("int64", np.dtype("<i8")),
    _INT32: ("int64", np.dtype("<i4")),
}
_NO_LOGPROB = -99999.0
_KEY = "forward_backward_input"


def decode_forward_backward(message: bytes) -> tuple[dict, bool]:
    """The JSON wire's body, its numbers as arrays, and whether only the forward pass is asked for.

    @raises WorkerError bad_input naming the field"""
    model_id, seq_id, forward_only = "", 0, False
    asked: dict[str, Any] = {"data": [], "loss_fn": ""}
    old, new = {}, {}
    for number, value in fields(message, "body"):
        if number == 1:
            model_id = _text(value, "model_id")
        elif number == 2:
            seq_id = _number(value, "seq_id")
        elif number == 3:
            asked["data"].append(_datum(value, f"{_KEY}.data[{len(asked['data'])}]"))
        elif number == 4:
            asked["loss_fn"] = _text(value, "loss_fn")
        elif number == 5:
            key, raw = _entry(value, f"{_KEY}.loss_fn_config")
            old[key] = _double(raw, f"{_KEY}.loss_fn_config.{key}")
        elif number == 6:
            forward_only = bool(value)
        elif number == 7:
            key, raw = _entry(value, f"{_KEY}.loss_fn_config")
            new[key] = _setting(raw, f"{_KEY}.loss_fn_config.{key}")
    # Both are sent by clients that serve old servers too; the newer one wins.
    config = new or old
    if config:
        asked["loss_fn_config"] = config
    key = "forward_input" if forward_only else _KEY
    return {"model_id": model_id, "seq_id": seq_id, key: asked}, forward_only


def _message(value: Value, where: str) -> bytes:
    if not isinstance(value, bytes):
        raise bad_input("not the protocol's message", where)
    return value


def _number(value: Value, where: str) -> int:
    if not isinstance(value, int):
        raise bad_input("must be a whole number", where)
    return signed(value)


def _text(value: Value, where: str) -> str:
    try:
        return _message(value, where).decode()
    except UnicodeDecodeError as error:
        raise bad_input("is not a text", where) from error


def _double(value: Value, where: str) -> float:
    raw = _message(value, where)
    if len(raw) != 8:
        raise bad_input("is not a number", where)
    return struct.unpack("<d", raw)[0]


def _entry(value: Value, where: str) -> tuple[str, Value]:
    """A map's entry; a value that is left out is the empty message."""
    parts = dict(fields(_message(value, where), where))
    return _text(parts.get(1, b""), where), parts.get(2, b"")


def _setting(value: Value, where: str) -> float | str:
    parts = dict(fields(_message(value, where), where))
    # The parser of the body says which settings may be what.
    return _text(parts[2], where) if 2 in parts else _double(parts.get(1, b"\0" * 8), where)


def _datum(value: Value, where: str) -> dict:
    chunks, inputs = [], {}
    for number, part in fields(_message(value, where), where):
        if number == 1:
            chunks.append(_chunk(part, f"{where}.model_input.chunks[{len(chunks)}]"))
        elif number == 2:
            name, tensor = _entry(part, f"{where}.loss_fn_inputs")
            inputs[name] = _tensor(tensor, f"{where}.loss_fn_inputs.{name}")
    return {"model_input": {"chunks": chunks}, "loss_fn_inputs": inputs}


def _chunk(value: Value, where: str) -> dict:
    parts = dict(fields(_message(value, where), where))
    if 1 not in parts:
        return {"type": "image" if 2 in parts else "unknown"}
    tokens = dict(fields(_message(parts[1], where), where)).get(1, b"")
    return {"type": "encoded_text", "tokens": _array(tokens, np.dtype("<i4"), f"{where}.tokens").astype(np.int64)}


def _tensor(value: Value, where: str) -> dict:
    dense, dtype, shape = None, 0, []
    for number, part in fields(_message(value, where), where):
        if number == 1:
            dense = part
        elif number == 2:
            raise bad_input("sparse tensors are not supported", where)
        elif number == 3:
            dtype = _number(part, f"{where}.dtype")
        elif number == 4:
            # Packed as a rule; one by one is the same message.
            shape += _packed_varints(part, where) if isinstance(part, bytes) else [signed(part)]
    if dtype not in _DTYPES:
        raise bad_input("must be float32 or int64", f"{where}.dtype")
    name, layout = _DTYPES[dtype]
    data = _array(dense if dense is not None else b"", layout, f"{where}.data")
    return {"data": data, "dtype": name, "shape": shape or None}


# Of a tensor's shape: its arrays have one dimension.
_MAX_SHAPE_BYTES = 100


def _packed_varints(raw: bytes, where: str) -> list[int]:
    if len(raw) > _MAX_SHAPE_BYTES:
        raise bad_input("has too many dimensions", f"{where}.shape")
    # A varint alone is a field's value: a key before each makes them fields.
    out, rest = [], raw
    while rest:
        end = next((i + 1 for i, byte in enumerate(rest) if byte < 0x80), 0)
        if not 0 < end <= 10:
            raise bad_input("must be a list of whole numbers", f"{where}.shape")
        out.append(signed(next(fields(b"\x08" + rest[:end], where))[1]))
        rest = rest[end:]
    return out


def _array(raw: Value, layout: np.dtype, where: str) -> np.ndarray:
    if not isinstance(raw, bytes) or len(raw) % layout.itemsize:
        raise bad_input(f"is not a whole number of {layout.itemsize}-byte values", where)
    return np.frombuffer(raw, layout)


def encode_result(result: bytes) -> bytes | None:
    """The message of a result that is known as JSON; None when the protocol has none for it."""
    parsed = json.loads(result)
    if "sequences" in parsed:
        return _sample_response(parsed)
    return _forward_backward_output(parsed) if "loss_fn_outputs" in parsed else None


def _sample_response(result: dict) -> bytes:
    out = b""
    for sequence in result["sequences"]:
        stop = b"" if sequence["stop_reason"] == "stop" else number_field(1, 1)
        tokens = np.asarray(sequence["tokens"], "<i4").tobytes()
        logprobs = np.asarray(sequence["logprobs"], "<f4").tobytes()
        out += bytes_field(1, stop + bytes_field(2, tokens) + bytes_field(3, logprobs))
    if "prompt_logprobs" in result:
        out += bytes_field(2, _nan_for_none(result["prompt_logprobs"]).tobytes())
    if "topk_prompt_logprobs" in result:
        out += bytes_field(3, _top(result["topk_prompt_logprobs"]))
    return out + number_field(4, result.get("prompt_cache_hit_tokens") or 0)


def _nan_for_none(values: list) -> np.ndarray:
    return np.asarray([np.nan if value is None else value for value in values], "<f4")


def _top(rows: list) -> bytes:
    """Places without a number hold token 0 and the protocol's mark."""
    k = max((len(row) for row in rows if row), default=0)
    ids, logprobs = np.zeros((len(rows), k), "<i4"), np.full((len(rows), k), _NO_LOGPROB, "<f4")
    for index, row in enumerate(rows):
        for place, (token, logprob) in enumerate(row or []):
            ids[index, place], logprobs[index, place] = token, logprob
    dense = bytes_field(1, ids.tobytes()) + bytes_field(2, logprobs.tobytes())
    return dense + number_field(3, k) + number_field(4, len(rows))


def _forward_backward_output(result: dict) -> bytes:
    outputs = result["loss_fn_outputs"]
    record = text_field(1, result["loss_fn_output_type"])
    for name in outputs[0] if outputs else ():
        arrays = [np.asarray(output[name]["data"], "<f4") for output in outputs]
        offsets = np.cumsum([0, *(array.nbytes for array in arrays)]).astype("<i8")
        tensor = bytes_field(1, b"".join(array.tobytes() for array in arrays)) + bytes_field(2, offsets.tobytes())
        record += bytes_field(2, text_field(1, name) + bytes_field(2, tensor + number_field(3, _FLOAT32)))
    out = text_field(1, result["loss_fn_output_type"]) + bytes_field(2, record + number_field(3, len(outputs)))
    for name, value in result["metrics"].items():
        out += bytes_field(3, text_field(1, name) + double_field(2, value))
    return out
