"""Weights in one flat float32 buffer with named views into it.

Invariant: every parameter is a view of `flat`, so a snapshot is one clone, the global gradient norm one reduction and
an AdamW step a handful of whole-buffer operations. Query/key/value and gate/up projections are stored fused;
`to_hf`/`load_hf` translate to and from Hugging Face names."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

from .errors import bad_input
from .model_config import ModelConfig


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


class Weights:
    """One set of weights. `with_grad` makes the views leaves whose gradients accumulate into `grad_flat`."""

    def __init__(self, config: ModelConfig, flat: torch.Tensor, with_grad: bool = False):
        self.config = config
        self.flat = flat
        self.grad_flat = torch.zeros_like(flat) if with_grad else None
        self.views: dict[str, torch.Tensor] = {}
        offset = 0
        for name, shape in parameter_shapes(config).items():
            size = math.prod(shape)
            view = flat[offset : offset + size].view(shape)
            if self.grad_flat is not None:
                view = view.detach().requires_grad_()
                view.grad = self.grad_flat[offset : offset + size].view(shape)
            self.views[name] = view
            offset += size
        self.embed = self.views["embed"]
        self.final_norm = self.views["final_norm"]
        self.head = self.embed if config.tied else self.views["head"]
        self.layers = [self._layer(index) for index in range(config.layers)]

    def _layer(self, index: int) -> LayerWeights:
        names = LayerWeights.__dataclass_fields__
        return LayerWeights(**{name: self.views[f"{index}.{name}"] for name in names})

    def snapshot(self) -> Weights:
        """An independent copy for the sampler; later updates do not reach it."""
        return Weights(self.config, self.flat.detach().clone())

    def to_hf(self) -> dict[str, torch.Tensor]:
        """Copies by Hugging Face name, on the CPU."""
        return {name: view.detach().cpu().contiguous().clone() for name, view in self._hf_views().items()}

    def load_hf(self, tensors: dict[str, torch.Tensor]) -> None:
        """Copies Hugging Face tensors in. @raises WorkerError bad_input when a tensor is missing or misshapen."""
        # Without gradients: the copies below are not part of any graph.
        targets = Weights(self.config, self.flat.detach())._hf_views()
        missing = sorted(set(targets) - set(tensors))
        if missing:
            raise bad_input(f"weights lack {len(missing)} tensors, first {missing[0]}", "path")
        with torch.no_grad():
            for name, target in targets.items():
                source = tensors[name]
                if source.shape != target.shape:
                    raise bad_input(f"{name} has shape {tuple(source.shape)}, expected {tuple(target.shape)}", "path")
                target.copy_(source.to(target.dtype))

    def _hf_views(self) -> dict[str, torch.Tensor]:
        """The views by Hugging Face name; a tied head has none, as there."""
        c = self.config
        q, kv = c.heads * c.head_dim, c.kv_heads * c.head_dim
        views = {"model.embed_tokens.weight": self.embed, "model.norm.weight": self.final_norm}
        if not c.tied:
            views["lm_head.weight"] = self.head
        for index, layer in enumerate(self.layers):
            p = f"model.layers.{index}."
            query, key, value = layer.qkv.split([q, kv, kv])
            gate, up = layer.gate_up.chunk(2)
            views |= {
                p + "input_layernorm.weight": layer.norm1,
                p + "self_attn.q_proj.weight": query,
                p + "self_attn.k_proj.weight": key,
                p + "self_attn.v_proj.weight": value,
                p + "self_attn.q_norm.weight": layer.q_norm,
                p + "self_attn.k_norm.weight": layer.k_norm,
                p + "self_attn.o_proj.weight": layer.out,
                p + "post_attention_layernorm.weight": layer.norm2,
                p + "mlp.gate_proj.weight": gate,
                p + "mlp.up_proj.weight": up,
                p + "mlp.down_proj.weight": layer.down,
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
