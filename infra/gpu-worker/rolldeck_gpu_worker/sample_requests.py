"""Reads an asample body into an engine job. @raises WorkerError bad_input naming the field"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import Any

import numpy as np

from .base_models import BaseModel
from .datums import check_vocabulary, int_array, parse_tokens
from .errors import bad_input
from .sampling import SamplingParams

_MAX_SAMPLES = 1024
# Options of the protocol that would change the answer and are not implemented.
_UNSUPPORTED = ("topk_sample_logprobs", "target_prompt_logprobs", "prompt_alt_tokens_k", "record_stability_info")
_KEYS = {"max_tokens", "temperature", "top_p", "top_k", "seed", "stop"}


@dataclass(frozen=True)
class SampleRequest:
    prompt: np.ndarray
    params: SamplingParams
    num_samples: int
    prompt_logprobs: bool
    top_prompt_logprobs: int
    # Only the prompt's last so many tokens are scored; None: all.
    prompt_logprobs_last: int | None = None


def parse_sample_request(body: dict, base: BaseModel) -> SampleRequest:
    config = base.config
    prompt = parse_tokens(body.get("prompt"), config.vocab_size, "prompt")
    if not prompt.size:
        raise bad_input("must hold at least one token", "prompt")
    num_samples = _integer(body.get("num_samples", 1), "num_samples", 1, _MAX_SAMPLES)
    raw = body.get("sampling_params")
    if not isinstance(raw, dict):
        raise bad_input("must be an object", "sampling_params")
    unknown = set(raw) - _KEYS
    if unknown:
        raise bad_input(f"unknown key; known: {', '.join(sorted(_KEYS))}", f"sampling_params.{sorted(unknown)[0]}")
    room = config.max_context - len(prompt)
    if room < 1:
        raise bad_input(f"has {len(prompt)} tokens; the context holds {config.max_context}", "prompt")
    field = "sampling_params.max_tokens"
    max_tokens = _integer(raw.get("max_tokens"), field, 1, 2**31)
    if max_tokens > room:
        raise bad_input(f"{len(prompt)} prompt tokens + {max_tokens} exceed the context of {config.max_context}", field)
    stop_tokens, stop_strings = _stops(raw.get("stop"), base)
    seed = raw.get("seed")
    if seed is not None and (isinstance(seed, bool) or not isinstance(seed, int)):
        raise bad_input("must be a whole number", "sampling_params.seed")
    params = SamplingParams(
        max_tokens=max_tokens,
        temperature=_number(raw.get("temperature"), 1.0, "temperature", 0.0, 100.0),
        top_p=_number(raw.get("top_p"), 1.0, "top_p", 1e-9, 1.0),
        top_k=_integer(raw.get("top_k") if raw.get("top_k") is not None else -1, "sampling_params.top_k", -1, 2**31),
        seed=(secrets.randbits(64) if seed is None else seed) & (2**64 - 1),
        stop_tokens=stop_tokens,
        stop_strings=stop_strings,
    )
    top = _integer(body.get("topk_prompt_logprobs") or 0, "topk_prompt_logprobs", 0, 100)
    last = body.get("prompt_logprobs_last_n")
    if last is not None:
        _integer(last, "prompt_logprobs_last_n", 1, len(prompt) - 1)
    for key in _UNSUPPORTED:
        if body.get(key):
            raise bad_input("is not supported by this worker", key)
    return SampleRequest(prompt, params, num_samples, bool(body.get("prompt_logprobs")), top, last)


def _stops(raw: Any, base: BaseModel) -> tuple[frozenset[int], tuple[bytes, ...]]:
    field = "sampling_params.stop"
    stops = [raw] if isinstance(raw, str) else raw or []
    if not isinstance(stops, list) or len(stops) > 64:
        raise bad_input("must be a list of token ids or of texts, at most 64", field)
    if stops and all(isinstance(stop, str) and stop for stop in stops):
        if base.token_bytes is None:
            raise bad_input("stop texts need a byte-level tokenizer; send token ids", field)
        return frozenset(), tuple(stop.encode() for stop in stops)
    tokens = int_array(stops, field)
    check_vocabulary(tokens, base.config.vocab_size, field)
    return frozenset(tokens.tolist()), ()


def _integer(value: Any, field: str, low: int, high: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise bad_input(f"must be a whole number from {low} to {high}", field)
    return value


def _number(value: Any, default: float, name: str, low: float, high: float) -> float:
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise bad_input("must be a finite number", f"sampling_params.{name}")
    if not low <= value <= high:
        raise bad_input(f"must be from {low} to {high}", f"sampling_params.{name}")
    return float(value)
