"""Shape of a model, parsed once from a Hugging Face `config.json`.

A dense Qwen3 runs in this worker's own forward pass; anything that would change that pass and is not implemented there is
left to `transformers`, or refused, rather than ignored."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import Literal

from .errors import WorkerError, bad_input

Runner = Literal["qwen3", "transformers"]


@dataclass(frozen=True)
class ModelConfig:
    vocab_size: int
    hidden_size: int
    intermediate_size: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    max_context: int
    rms_eps: float
    rope_theta: float
    init_std: float
    tied: bool
    # Whose forward pass computes it.
    runner: Runner = "qwen3"

    @property
    def qkv_rows(self) -> int:
        return (self.heads + 2 * self.kv_heads) * self.head_dim


def parse_model_config(raw: dict) -> ModelConfig:
    """@raises WorkerError bad_input when the folder is not a dense Qwen3 that the own forward pass computes exactly."""
    architectures = raw.get("architectures") or []
    if architectures != ["Qwen3ForCausalLM"]:
        raise bad_input(
            f"architecture {architectures} is not supported: this worker runs Qwen3ForCausalLM", "base_model"
        )
    refused = {
        "attention_bias": raw.get("attention_bias", False) is not False,
        "hidden_act": raw.get("hidden_act", "silu") != "silu",
        "use_sliding_window": bool(raw.get("use_sliding_window", False)),
        "rope_scaling": _rope_type(raw) not in (None, "default"),
    }
    for key, is_refused in refused.items():
        if is_refused:
            raise bad_input(f"config.json: {key}={raw.get(key)!r} is not supported", "base_model")
    return _shape(raw, "qwen3")


def parse_any_config(raw: dict) -> ModelConfig:
    """As `parse_model_config`; what it refuses is given to `transformers`, when that is installed.

    @raises WorkerError bad_input when neither runs it"""
    try:
        return parse_model_config(raw)
    except WorkerError as error:
        architectures = raw.get("architectures") or []
        if len(architectures) != 1 or not re.fullmatch(r"\w+ForCausalLM", str(architectures[0])):
            raise
        if find_spec("transformers") is None:
            raise bad_input(f"{error.detail}; install transformers to run it", "base_model") from error
        shape = _shape(raw, "transformers")
        # Within a sliding window the attention is the whole one.
        window = raw.get("sliding_window") if raw.get("use_sliding_window", True) else None
        return shape if not window else replace(shape, max_context=min(shape.max_context, int(window)))


def _shape(raw: dict, runner: Runner) -> ModelConfig:
    needed = ("vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads")
    for key in needed:
        if isinstance(raw.get(key), bool) or not isinstance(raw.get(key), int) or raw[key] < 1:
            raise bad_input(f"config.json: {key} must be a whole number above 0", "base_model")
    heads, hidden = raw["num_attention_heads"], raw["hidden_size"]
    theta = raw.get("rope_theta") or (raw.get("rope_parameters") or {}).get("rope_theta") or 10000.0
    return ModelConfig(
        vocab_size=raw["vocab_size"],
        hidden_size=hidden,
        intermediate_size=int(raw.get("intermediate_size") or 4 * hidden),
        layers=raw["num_hidden_layers"],
        heads=heads,
        kv_heads=int(raw.get("num_key_value_heads") or heads),
        head_dim=int(raw.get("head_dim") or hidden // heads),
        max_context=int(raw.get("max_position_embeddings", 2048)),
        rms_eps=float(raw.get("rms_norm_eps", 1e-6)),
        rope_theta=float(theta),
        init_std=float(raw.get("initializer_range", 0.02)),
        tied=bool(raw.get("tie_word_embeddings", False)),
        runner=runner,
    )


def _rope_type(raw: dict) -> str | None:
    scaling = raw.get("rope_scaling") or raw.get("rope_parameters") or {}
    return scaling.get("rope_type") or scaling.get("type")
