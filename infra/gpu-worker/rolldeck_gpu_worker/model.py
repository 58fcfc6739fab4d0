"""The Qwen3 forward pass, twice: packed for training, cached for sampling. Both compute the same function of the same
weights in float32, so sampling log-probabilities equal the trainer's up to rounding."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F

from .kv_rows import KvRows
from .model_config import ModelConfig
from .packing import AttentionGroup, PackedBatch
from .weights import LayerWeights, Weights


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


def rotate(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    half = x.shape[-1] // 2
    return x * cos + torch.cat([x[..., half:], x[..., :half]], dim=-1) * sin


def rms_norm(x: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    return F.rms_norm(x, (x.shape[-1],), weight, eps)


def _project(
    x: torch.Tensor, layer: LayerWeights, c: ModelConfig, cos: torch.Tensor, sin: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Normed, rotated queries and keys, and values: [tokens, heads, head_dim] each."""
    qkv = F.linear(rms_norm(x, layer.norm1, c.rms_eps), layer.qkv).view(x.shape[0], -1, c.head_dim)
    q, k, v = qkv.split([c.heads, c.kv_heads, c.kv_heads], dim=1)
    q = rotate(rms_norm(q, layer.q_norm, c.rms_eps), cos, sin)
    k = rotate(rms_norm(k, layer.k_norm, c.rms_eps), cos, sin)
    return q, k, v


def _mlp(x: torch.Tensor, layer: LayerWeights, c: ModelConfig) -> torch.Tensor:
    gate, up = F.linear(rms_norm(x, layer.norm2, c.rms_eps), layer.gate_up).chunk(2, dim=-1)
    return F.linear(F.silu(gate) * up, layer.down)


def _shared(x: torch.Tensor, c: ModelConfig) -> torch.Tensor:
    """Key or value heads [_, kv_heads, _, _] repeated for the query heads that share them."""
    return x if c.kv_heads == c.heads else x.repeat_interleave(c.heads // c.kv_heads, dim=1)


def _grid(x: torch.Tensor, group: AttentionGroup) -> torch.Tensor:
    """A group's tokens as [sequences, heads, longest, head_dim]."""
    rows = x[group.start : group.end]
    if group.grid is not None:
        rows = rows.index_select(0, group.grid)
    return rows.view(group.sequences, group.longest, *x.shape[1:]).transpose(1, 2)


def _packed_attention(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, groups: list[AttentionGroup], c: ModelConfig
) -> torch.Tensor:
    outputs = []
    for group in groups:
        out = F.scaled_dot_product_attention(
            _grid(q, group), _shared(_grid(k, group), c), _shared(_grid(v, group), c), is_causal=True
        )
        out = out.transpose(1, 2).reshape(group.sequences * group.longest, -1)
        outputs.append(out if group.kept is None else out.index_select(0, group.kept))
    return outputs[0] if len(outputs) == 1 else torch.cat(outputs)


def forward_packed(weights: Weights, rope: Rope, batch: PackedBatch) -> torch.Tensor:
    """Final hidden states [tokens, hidden] of a packed batch; differentiable."""
    c = weights.config
    x = F.embedding(batch.tokens, weights.embed)
    cos, sin = rope.at(batch.positions)
    for layer in weights.layers:
        q, k, v = _project(x, layer, c, cos, sin)
        x = x + F.linear(_packed_attention(q, k, v, batch.groups, c), layer.out)
        x = x + _mlp(x, layer, c)
    return rms_norm(x, weights.final_norm, c.rms_eps)


@dataclass
class PrefillGroup:
    """Prompt chunks of rows [row, row + count) on a padded grid (count × longest)."""

    row: int
    count: int
    longest: int
    # Flat token indices of the grid; padding repeats a valid token and is dropped through `kept`.
    grid: torch.Tensor
    kept: torch.Tensor
    # Keys looked at, counted from position 0, and which of them: bool [count, 1, longest, seen].
    seen: int
    mask: torch.Tensor


@dataclass
class CachedStep:
    """One step of continuous batching over cache rows [0, n): the first `decoding` rows take one token each, the
    others a chunk of prompt. `last` holds the flat index of each row's last token."""

    tokens: torch.Tensor
    positions: torch.Tensor
    rows: torch.Tensor
    last: torch.Tensor
    decoding: int
    # Keys looked at by decoding rows, and which of them: bool [decoding, 1, 1, seen].
    decode_seen: int
    decode_mask: torch.Tensor | None
    prefill: list[PrefillGroup]


@torch.inference_mode()
def forward_cached(weights: Weights, rope: Rope, cache: KvRows, step: CachedStep) -> torch.Tensor:
    """Logits [rows, vocab] after each row's last token; writes the step's keys and values into the cache."""
    c = weights.config
    x = F.embedding(step.tokens, weights.embed)
    cos, sin = rope.at(step.positions)
    for index, layer in enumerate(weights.layers):
        q, k, v = _project(x, layer, c, cos, sin)
        cache.write(index, step.rows, step.positions, k, v)
        attended = [_decode_attention(q, cache, index, step, c)] if step.decoding else []
        attended += [_prefill_attention(q, cache, index, group, c) for group in step.prefill]
        x = x + F.linear(attended[0] if len(attended) == 1 else torch.cat(attended), layer.out)
        x = x + _mlp(x, layer, c)
    return F.linear(rms_norm(x[step.last], weights.final_norm, c.rms_eps), weights.head)


def _decode_attention(q: torch.Tensor, cache: KvRows, index: int, step: CachedStep, c: ModelConfig) -> torch.Tensor:
    keys, values = cache.read(index, 0, step.decoding, step.decode_seen)
    out = F.scaled_dot_product_attention(
        q[: step.decoding].unsqueeze(2), _shared(keys, c), _shared(values, c), attn_mask=step.decode_mask
    )
    return out.reshape(step.decoding, -1)


def _prefill_attention(q: torch.Tensor, cache: KvRows, index: int, group: PrefillGroup, c: ModelConfig) -> torch.Tensor:
    keys, values = cache.read(index, group.row, group.row + group.count, group.seen)
    queries = q[group.grid].view(group.count, group.longest, c.heads, c.head_dim).transpose(1, 2)
    out = F.scaled_dot_product_attention(queries, _shared(keys, c), _shared(values, c), attn_mask=group.mask)
    return out.transpose(1, 2).reshape(group.count * group.longest, -1)[group.kept]
