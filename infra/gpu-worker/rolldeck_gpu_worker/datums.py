"""Training rows as parsed from a request, checked before anything is queued.

Invariant: every array of a Datum has the length of its tokens, is finite, and its ids are inside the vocabulary."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

import numpy as np

from .errors import bad_input
from .losses import check_loss

_SUPERVISED = "cross_entropy"


def _required(loss: str) -> tuple[str, ...]:
    return ("target_tokens",) if loss == _SUPERVISED else ("target_tokens", "logprobs", "advantages")


def _optional(loss: str) -> tuple[str, ...]:
    return ("weights",) if loss == _SUPERVISED else ("weights", "ref_logprobs")


@dataclass(frozen=True)
class Datum:
    tokens: np.ndarray
    targets: np.ndarray
    weights: np.ndarray
    logprobs: np.ndarray
    advantages: np.ndarray
    ref_logprobs: np.ndarray | None


@dataclass(frozen=True)
class LossRequest:
    """What forward and forward_backward ask for. `digest` identifies the payload across retries."""

    data: list[Datum]
    loss: str
    config: dict[str, float]
    digest: str

    @property
    def tokens(self) -> int:
        return sum(len(datum.tokens) for datum in self.data)


def parse_tokens(model_input: Any, vocab_size: int, field: str) -> np.ndarray:
    """Concatenates `chunks` of encoded text. @raises WorkerError bad_input"""
    chunks = model_input.get("chunks") if isinstance(model_input, dict) else None
    if not isinstance(chunks, list) or not chunks:
        raise bad_input("chunks must be a non-empty list", f"{field}.chunks")
    parts = []
    for index, chunk in enumerate(chunks):
        where = f"{field}.chunks[{index}]"
        if not isinstance(chunk, dict) or chunk.get("type", "encoded_text") != "encoded_text":
            raise bad_input("only chunks of type encoded_text are supported", f"{where}.type")
        parts.append(int_array(chunk.get("tokens"), f"{where}.tokens"))
    tokens = np.concatenate(parts)
    check_vocabulary(tokens, vocab_size, field)
    return tokens


def check_vocabulary(tokens: np.ndarray, vocab_size: int, field: str) -> None:
    if tokens.size and (tokens.min() < 0 or tokens.max() >= vocab_size):
        bad = int(tokens[(tokens < 0) | (tokens >= vocab_size)][0])
        raise bad_input(f"token {bad} is outside the vocabulary of {vocab_size}", field)


def array_of(values: list | np.ndarray, field: str) -> np.ndarray:
    """@raises WorkerError bad_input for lists in lists of different lengths, which are no array"""
    try:
        return np.asarray(values)
    except ValueError as error:
        raise bad_input("must hold numbers only", field) from error


def int_array(values: Any, field: str) -> np.ndarray:
    if not isinstance(values, (list, np.ndarray)):
        raise bad_input("must be a list of integers", field)
    array = array_of(values, field) if len(values) else np.zeros(0, np.int64)
    if array.ndim != 1 or array.dtype.kind != "i":
        # Floats that are whole numbers are common in JSON written by other languages.
        if array.ndim != 1 or array.dtype.kind != "f" or not np.all(np.mod(array, 1) == 0):
            raise bad_input("must be a list of integers", field)
    return array.astype(np.int64)


def _tensor(raw: Any, length: int, integers: bool, field: str) -> np.ndarray:
    if not isinstance(raw, dict) or not isinstance(raw.get("data"), (list, np.ndarray)):
        raise bad_input("must be a tensor {data, dtype, shape}", field)
    unknown = set(raw) - {"data", "dtype", "shape"}
    if unknown:
        raise bad_input(f"unknown key {sorted(unknown)[0]!r}", field)
    if raw.get("dtype") not in (("int64",) if integers else ("float32", "int64")):
        raise bad_input(f"dtype must be {'int64' if integers else 'float32'}", f"{field}.dtype")
    data = raw["data"]
    if len(data) != length:
        raise bad_input(f"has {len(data)} entries, the input has {length} tokens", f"{field}.data")
    if raw.get("shape") not in (None, [length]):
        raise bad_input(f"shape must be [{length}]", f"{field}.shape")
    if integers:
        return int_array(data, f"{field}.data")
    array = array_of(data, f"{field}.data")
    if array.dtype.kind not in "fiu" or array.ndim != 1:
        raise bad_input("must hold numbers only", f"{field}.data")
    array = array.astype(np.float32)
    if not np.isfinite(array).all():
        raise bad_input("must be finite", f"{field}.data")
    return array


def parse_datum(raw: Any, loss: str, vocab_size: int, max_context: int, field: str) -> Datum:
    if not isinstance(raw, dict) or set(raw) - {"model_input", "loss_fn_inputs"}:
        raise bad_input("must be {model_input, loss_fn_inputs}", field)
    tokens = parse_tokens(raw.get("model_input"), vocab_size, f"{field}.model_input")
    length = len(tokens)
    if not 0 < length <= max_context:
        raise bad_input(f"has {length} tokens; 1 to {max_context} are allowed", f"{field}.model_input")
    inputs = raw.get("loss_fn_inputs")
    if not isinstance(inputs, dict):
        raise bad_input("must be an object of tensors", f"{field}.loss_fn_inputs")
    required = _required(loss)
    allowed = required + _optional(loss)
    for key in inputs:
        if key not in allowed:
            raise bad_input(f"{loss} takes {', '.join(allowed)}", f"{field}.loss_fn_inputs.{key}")
    for key in required:
        if key not in inputs:
            raise bad_input(f"{loss} needs it", f"{field}.loss_fn_inputs.{key}")
    arrays = {
        key: _tensor(value, length, key == "target_tokens", f"{field}.loss_fn_inputs.{key}")
        for key, value in inputs.items()
    }
    check_vocabulary(arrays["target_tokens"], vocab_size, f"{field}.loss_fn_inputs.target_tokens")
    zeros = np.zeros(length, np.float32)
    # Without weights a zero advantage is the protocol's mask.
    mask = (arrays["advantages"] != 0).astype(np.float32) if "advantages" in arrays else np.ones(length, np.float32)
    return Datum(
        tokens=tokens,
        targets=arrays["target_tokens"],
        weights=arrays.get("weights", mask),
        logprobs=arrays.get("logprobs", zeros),
        advantages=arrays.get("advantages", zeros),
        ref_logprobs=arrays.get("ref_logprobs"),
    )


def parse_loss_request(raw: Any, vocab_size: int, max_context: int, field: str) -> LossRequest:
    """Parses `{data, loss_fn, loss_fn_config?}`. @raises WorkerError bad_input naming the field."""
    if not isinstance(raw, dict):
        raise bad_input("must be {data, loss_fn, loss_fn_config?}", field)
    unknown = set(raw) - {"data", "loss_fn", "loss_fn_config"}
    if unknown:
        raise bad_input(f"unknown key {sorted(unknown)[0]!r}", field)
    loss = raw.get("loss_fn")
    config = raw.get("loss_fn_config") or {}
    if not isinstance(config, dict) or not all(
        isinstance(v, (int, float)) and not isinstance(v, bool) for v in config.values()
    ):
        raise bad_input("must be an object of numbers", f"{field}.loss_fn_config")
    check_loss(loss if isinstance(loss, str) else "", config)
    data = raw.get("data")
    if not isinstance(data, list) or not data:
        raise bad_input("must be a non-empty list", f"{field}.data")
    datums = [parse_datum(d, loss, vocab_size, max_context, f"{field}.data[{i}]") for i, d in enumerate(data)]
    weighted = all("weights" in d["loss_fn_inputs"] for d in data)
    for key in ("kl_coef", "entropy_coef"):
        if config.get(key) and not weighted:
            raise bad_input(f"{key} needs weights in every datum", f"{field}.loss_fn_config.{key}")
    if config.get("kl_coef") and any(d.ref_logprobs is None for d in datums):
        raise bad_input("kl_coef needs ref_logprobs in every datum", f"{field}.loss_fn_config.kl_coef")
    return LossRequest(datums, loss, {k: float(v) for k, v in config.items()}, _digest(datums, loss, config))


def _digest(data: list[Datum], loss: str, config: dict) -> str:
    h = hashlib.sha256(repr((loss, sorted((k, float(v)) for k, v in config.items()))).encode())
    for datum in data:
        for array in (datum.tokens, datum.targets, datum.weights, datum.logprobs, datum.advantages, datum.ref_logprobs):
            h.update(b"-" if array is None else len(array).to_bytes(8, "little") + array.tobytes())
    return h.hexdigest()
