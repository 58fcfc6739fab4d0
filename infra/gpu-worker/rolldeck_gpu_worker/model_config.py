"""Shape of a model, parsed once from a Hugging Face `config.json`. Only dense Qwen3 is implemented; anything that would
change the forward pass and is not implemented is refused here rather than ignored."""

from __future__ import annotations

from dataclasses import dataclass

from .errors import bad_input


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

    @property
    def qkv_rows(self) -> int:
        return (self.heads + 2 * self.kv_heads) * self.head_dim


def parse_model_config(raw: dict) -> ModelConfig:
    """@raises WorkerError bad_input when the folder is not a dense Qwen3 this worker can run exactly."""
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
    heads = int(raw["num_attention_heads"])
    hidden = int(raw["hidden_size"])
    theta = raw.get("rope_theta") or (raw.get("rope_parameters") or {}).get("rope_theta") or 10000.0
    return ModelConfig(
        vocab_size=int(raw["vocab_size"]),
        hidden_size=hidden,
        intermediate_size=int(raw["intermediate_size"]),
        layers=int(raw["num_hidden_layers"]),
        heads=heads,
        kv_heads=int(raw.get("num_key_value_heads") or heads),
        head_dim=int(raw.get("head_dim") or hidden // heads),
        max_context=int(raw.get("max_position_embeddings", 2048)),
        rms_eps=float(raw.get("rms_norm_eps", 1e-6)),
        rope_theta=float(theta),
        init_std=float(raw.get("initializer_range", 0.02)),
        tied=bool(raw.get("tie_word_embeddings", False)),
    )


def _rope_type(raw: dict) -> str | None:
    scaling = raw.get("rope_scaling") or raw.get("rope_parameters") or {}
    return scaling.get("rope_type") or scaling.get("type")
