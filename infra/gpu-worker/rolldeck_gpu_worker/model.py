"""The dense Qwen3 forward pass, written out: packed for training, cached for sampling. Both compute the same function of the
same weights in the same arithmetic, so sampling log-probabilities equal the trainer's up to rounding."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint

from .attention import CachedAttention, CachedStep, PackedAttention
from .kv_rows import KvRows
from .model_config import ModelConfig
from .packing import PackedBatch

if TYPE_CHECKING:
    from .weights import LayerWeights, Weights

Attend = Callable[[int, torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]


class Rope:
    """Rotary tables for positions [0, max_context), in the half-split layout of Hugging Face."""

    def __init__(self, config: ModelConfig, device: torch.device):
        half = config.head_dim // 2
        inverse = 1.0 / (config.rope_theta ** (torch.arange(half, dtype=torch.float64) / half))
        angles = torch.arange(config.max_context, dtype=torch.float64)[:, None] * inverse[None, :]
        self.cos = torch.cat([angles.cos(), angles.cos()], dim=-1).float().to(device)
        # The sign of the rotation is folded in: rotate(x) = x*cos + roll(x)*sin.
        self.sin = torch.cat([-angles.sin(), angles.sin()], dim=-1).float().to(device)

    def at(self, positions: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """cos and sin of shape [tokens, 1, head_dim]."""
        return self.cos[positions].unsqueeze(1), self.sin[positions].unsqueeze(1)


@lru_cache(maxsize=8)
def rope_of(config: ModelConfig, device: torch.device) -> Rope:
    # Made once, perhaps by a sampling step: tensors of inference mode could not be used for training.
    with torch.inference_mode(False):
        return Rope(config, device)


def rotate(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    half = x.shape[-1] // 2
    return x * cos + torch.cat([x[..., half:], x[..., :half]], dim=-1) * sin


def rms_norm(x: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    return F.rms_norm(x, (x.shape[-1],), weight.to(x.dtype), eps)


def _linear(x: torch.Tensor, layer: LayerWeights, name: str) -> torch.Tensor:
    """A projection, with its low-rank additions when the layer is adapted: one for each part of a fused projection."""
    y = F.linear(x, getattr(layer, name).to(x.dtype))
    parts = layer.low_rank.get(name)
    return y if parts is None else y + torch.cat([part(x) for part in parts], dim=-1)


def _project(
    x: torch.Tensor, layer: LayerWeights, c: ModelConfig, cos: torch.Tensor, sin: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Normed, rotated queries and keys, and values: [tokens, heads, head_dim] each."""
    qkv = _linear(rms_norm(x, layer.norm1, c.rms_eps), layer, "qkv").view(x.shape[0], -1, c.head_dim)
    q, k, v = qkv.split([c.heads, c.kv_heads, c.kv_heads], dim=1)
    # Angles are float32, and the result is as the values are.
    q = rotate(rms_norm(q, layer.q_norm, c.rms_eps), cos, sin).to(v.dtype)
    k = rotate(rms_norm(k, layer.k_norm, c.rms_eps), cos, sin).to(v.dtype)
    return q, k, v


def _mlp(x: torch.Tensor, layer: LayerWeights, c: ModelConfig) -> torch.Tensor:
    gate, up = _linear(rms_norm(x, layer.norm2, c.rms_eps), layer, "gate_up").chunk(2, dim=-1)
    return _linear(F.silu(gate) * up, layer, "down")


def _layer(
    x: torch.Tensor,
    index: int,
    layer: LayerWeights,
    c: ModelConfig,
    cos: torch.Tensor,
    sin: torch.Tensor,
    attend: Attend,
) -> torch.Tensor:
    q, k, v = _project(x, layer, c, cos, sin)
    x = x + _linear(attend(index, q, k, v), layer, "out")
    return x + _mlp(x, layer, c)


def _layers(weights: Weights, tokens: torch.Tensor, positions: torch.Tensor, attend: Attend) -> torch.Tensor:
    """Hidden states [tokens, hidden] before the final norm."""
    c = weights.config
    x = F.embedding(tokens, weights.embed).to(weights.compute)
    cos, sin = rope_of(c, tokens.device).at(positions)
    for index, layer in enumerate(weights.layers):
        if weights.recompute and torch.is_grad_enabled():
            x = checkpoint(_layer, x, index, layer, c, cos, sin, attend, use_reentrant=False)
        else:
            x = _layer(x, index, layer, c, cos, sin, attend)
    return x


def packed_hidden(weights: Weights, batch: PackedBatch) -> torch.Tensor:
    """Final hidden states [tokens, hidden] of a packed batch; differentiable."""
    x = _layers(weights, batch.tokens, batch.positions, PackedAttention(batch.groups))
    return rms_norm(x, weights.final_norm, weights.config.rms_eps)


def cached_hidden(weights: Weights, cache: KvRows, step: CachedStep) -> torch.Tensor:
    """Final hidden states [rows, hidden] of each row's last token; writes the step's keys and values into the cache."""
    x = _layers(weights, step.tokens, step.positions, CachedAttention(cache, step))
    return rms_norm(x[step.last], weights.final_norm, weights.config.rms_eps)
