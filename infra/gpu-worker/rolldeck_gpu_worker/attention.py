"""Attention over tokens that lie flat, without padding: a packed batch for training, cache rows for sampling.

Both are called per layer with queries [tokens, heads, head_dim], keys and values [tokens, kv_heads, head_dim], rotated already,
and give [tokens, heads * head_dim]. Invariant: a token sees its own sequence up to itself and nothing of its neighbours."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F

from .kv_rows import KvRows
from .packing import AttentionGroup


def _shared(x: torch.Tensor, heads: int) -> torch.Tensor:
    """Key or value heads [_, kv_heads, _, _] repeated for the query heads that share them."""
    return x if x.shape[1] == heads else x.repeat_interleave(heads // x.shape[1], dim=1)


def _grid(x: torch.Tensor, group: AttentionGroup) -> torch.Tensor:
    """A group's tokens as [sequences, heads, longest, head_dim]."""
    rows = x[group.start : group.end]
    if group.grid is not None:
        rows = rows.index_select(0, group.grid)
    return rows.view(group.sequences, group.longest, *x.shape[1:]).transpose(1, 2)


@dataclass(frozen=True)
class PackedAttention:
    """Causal within each sequence of a packed batch; differentiable."""

    groups: list[AttentionGroup]

    def __call__(
        self, _: int, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, scale: float | None = None
    ) -> torch.Tensor:
        heads = q.shape[1]
        outputs = []
        for group in self.groups:
            keys, values = _shared(_grid(k, group), heads), _shared(_grid(v, group), heads)
            out = F.scaled_dot_product_attention(_grid(q, group), keys, values, is_causal=True, scale=scale)
            out = out.transpose(1, 2).reshape(group.sequences * group.longest, -1)
            outputs.append(out if group.kept is None else out.index_select(0, group.kept))
        return outputs[0] if len(outputs) == 1 else torch.cat(outputs)


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


@dataclass(frozen=True)
class CachedAttention:
    """Writes the step's keys and values into the cache and attends over what each row holds."""

    cache: KvRows
    step: CachedStep

    def __call__(
        self, layer: int, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, scale: float | None = None
    ) -> torch.Tensor:
        self.cache.write(layer, self.step.rows, self.step.positions, k, v)
        attended = [self._decode(layer, q, scale)] if self.step.decoding else []
        attended += [self._prefill(layer, q, group, scale) for group in self.step.prefill]
        return attended[0] if len(attended) == 1 else torch.cat(attended)

    def _decode(self, layer: int, q: torch.Tensor, scale: float | None) -> torch.Tensor:
        step, heads = self.step, q.shape[1]
        keys, values = self.cache.read(layer, 0, step.decoding, step.decode_seen)
        queries = q[: step.decoding].unsqueeze(2)
        out = F.scaled_dot_product_attention(
            queries, _shared(keys, heads), _shared(values, heads), attn_mask=step.decode_mask, scale=scale
        )
        return out.reshape(step.decoding, -1)

    def _prefill(self, layer: int, q: torch.Tensor, group: PrefillGroup, scale: float | None) -> torch.Tensor:
        heads = q.shape[1]
        keys, values = self.cache.read(layer, group.row, group.row + group.count, group.seen)
        queries = q[group.grid].view(group.count, group.longest, *q.shape[1:]).transpose(1, 2)
        out = F.scaled_dot_product_attention(
            queries, _shared(keys, heads), _shared(values, heads), attn_mask=group.mask, scale=scale
        )
        return out.transpose(1, 2).reshape(group.count * group.longest, -1)[group.kept]
