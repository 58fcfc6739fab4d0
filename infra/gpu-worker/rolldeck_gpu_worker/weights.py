"""Dense Qwen3 weights in one flat buffer with named views into it.

Query/key/value and gate/up projections are stored fused; `hf_views` translates to Hugging Face names."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import torch

from .attention import CachedStep
from .flat_views import flat_views
from .kv_rows import KvRows
from .lora import UNEMBED, LoraAdapter, LoraSpec, LowRank
from .model import cached_hidden, packed_hidden
from .model_config import ModelConfig
from .packing import PackedBatch
from .policy_weights import PolicyWeights

_ATTENTION = ("q_proj", "k_proj", "v_proj", "o_proj")
_MLP = ("gate_proj", "up_proj", "down_proj")
# Which modules each stored projection is made of.
_FUSED = {
    "qkv": ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"),
    "out": ("self_attn.o_proj",),
    "gate_up": ("mlp.gate_proj", "mlp.up_proj"),
    "down": ("mlp.down_proj",),
}


@dataclass
class LayerWeights:
    norm1: torch.Tensor
    qkv: torch.Tensor
    q_norm: torch.Tensor
    k_norm: torch.Tensor
    out: torch.Tensor
    norm2: torch.Tensor
    gate_up: torch.Tensor
    down: torch.Tensor
    # Additions to projections, by projection: one for each module it is made of.
    low_rank: dict[str, list[LowRank]] = field(default_factory=dict)


class Weights(PolicyWeights):
    """One set of weights. `with_grad` makes the views leaves whose gradients accumulate into `grad_flat`."""

    def __init__(
        self, config: ModelConfig, flat: torch.Tensor, with_grad: bool = False, adapter: LoraAdapter | None = None
    ):
        super().__init__(config, flat, with_grad, adapter)
        self.views = flat_views(flat, parameter_shapes(config), self._own_grad)
        self.embed = self.views["embed"]
        self.final_norm = self.views["final_norm"]
        self.head = self.embed if config.tied else self.views["head"]
        self.layers = [self._layer(index) for index in range(config.layers)]

    def _layer(self, index: int) -> LayerWeights:
        names = [name for name in LayerWeights.__dataclass_fields__ if name != "low_rank"]
        low_ranks = self.adapter.low_ranks if self.adapter is not None else {}
        low_rank = {
            name: [low_ranks[f"model.layers.{index}.{part}"] for part in parts]
            for name, parts in _FUSED.items()
            if f"model.layers.{index}.{parts[0]}" in low_ranks
        }
        return LayerWeights(**{name: self.views[f"{index}.{name}"] for name in names}, low_rank=low_rank)

    def hidden(self, batch: PackedBatch) -> torch.Tensor:
        return packed_hidden(self, batch)

    def _cached_hidden(self, cache: KvRows, step: CachedStep) -> torch.Tensor:
        return cached_hidden(self, cache, step)

    def snapshot(self) -> Weights:
        config, flat = self.config, self.flat.detach().to(self.compute, copy=True)
        if self.adapter is not None and UNEMBED in self.adapter.low_ranks and config.tied:
            # The addition is the head's alone: embedding and head are two from here on, the head last in the buffer.
            embed = self.embed.detach().to(self.compute).reshape(-1)
            merged = Weights(replace(config, tied=False), torch.cat([flat, embed]))
        else:
            merged = Weights(config, flat)
        self._add_deltas(merged)
        return merged

    def hf_views(self) -> dict[str, torch.Tensor]:
        c = self.config
        q, kv = c.heads * c.head_dim, c.kv_heads * c.head_dim
        views = {"model.embed_tokens.weight": self.embed.detach(), "model.norm.weight": self.final_norm.detach()}
        if not c.tied:
            views["lm_head.weight"] = self.head.detach()
        for index, layer in enumerate(self.layers):
            p = f"model.layers.{index}."
            query, key, value = layer.qkv.detach().split([q, kv, kv])
            gate, up = layer.gate_up.detach().chunk(2)
            views |= {
                p + "input_layernorm.weight": layer.norm1.detach(),
                p + "self_attn.q_proj.weight": query,
                p + "self_attn.k_proj.weight": key,
                p + "self_attn.v_proj.weight": value,
                p + "self_attn.q_norm.weight": layer.q_norm.detach(),
                p + "self_attn.k_norm.weight": layer.k_norm.detach(),
                p + "self_attn.o_proj.weight": layer.out.detach(),
                p + "post_attention_layernorm.weight": layer.norm2.detach(),
                p + "mlp.gate_proj.weight": gate,
                p + "mlp.up_proj.weight": up,
                p + "mlp.down_proj.weight": layer.down.detach(),
            }
        return views


def parameter_shapes(c: ModelConfig) -> dict[str, tuple[int, ...]]:
    """Names and shapes in buffer order. Changing the order would break stored optimiser states."""
    shapes: dict[str, tuple[int, ...]] = {"embed": (c.vocab_size, c.hidden_size)}
    for index in range(c.layers):
        shapes |= {
            f"{index}.norm1": (c.hidden_size,),
            f"{index}.qkv": (c.qkv_rows, c.hidden_size),
            f"{index}.q_norm": (c.head_dim,),
            f"{index}.k_norm": (c.head_dim,),
            f"{index}.out": (c.hidden_size, c.heads * c.head_dim),
            f"{index}.norm2": (c.hidden_size,),
            f"{index}.gate_up": (2 * c.intermediate_size, c.hidden_size),
            f"{index}.down": (c.hidden_size, c.intermediate_size),
        }
    shapes["final_norm"] = (c.hidden_size,)
    if not c.tied:
        shapes["head"] = (c.vocab_size, c.hidden_size)
    return shapes


def lora_modules(c: ModelConfig, spec: LoraSpec) -> dict[str, tuple[int, int]]:
    """(out, in) of each module that `spec` adapts, in the order of an adapter's buffer."""
    q, kv = c.heads * c.head_dim, c.kv_heads * c.head_dim
    narrow, wide = (kv, c.hidden_size), (c.intermediate_size, c.hidden_size)
    attention = dict(zip(_ATTENTION, [(q, c.hidden_size), narrow, narrow, (c.hidden_size, q)], strict=True))
    mlp = dict(zip(_MLP, [wide, wide, wide[::-1]], strict=True))
    modules: dict[str, tuple[int, int]] = {}
    for index in range(c.layers):
        if spec.train_attn:
            modules |= {f"model.layers.{index}.self_attn.{name}": shape for name, shape in attention.items()}
        if spec.train_mlp:
            modules |= {f"model.layers.{index}.mlp.{name}": shape for name, shape in mlp.items()}
    if spec.train_unembed:
        modules[UNEMBED] = (c.vocab_size, c.hidden_size)
    return modules


def parameter_count(config: ModelConfig) -> int:
    return sum(math.prod(shape) for shape in parameter_shapes(config).values())


def seeded_flat(config: ModelConfig, seed: int, device: torch.device) -> torch.Tensor:
    """Fresh weights: norms 1, the rest normal with the config's deviation. Equal on every device for one seed."""
    generator = torch.Generator().manual_seed(seed)
    parts = []
    for shape in parameter_shapes(config).values():
        size = math.prod(shape)
        if len(shape) == 1:
            parts.append(torch.ones(size))
        else:
            parts.append(torch.randn(size, generator=generator) * config.init_std)
    return torch.cat(parts).to(device)
