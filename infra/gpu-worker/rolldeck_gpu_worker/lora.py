"""Low-rank adapters over frozen weights (LoRA, arXiv:2106.09685): y = x Wᵀ + (alpha / rank) · (x Aᵀ) Bᵀ.

Invariant: an adapter's parameters are float32 views of one flat buffer, as full weights are, so that optimizer, gradient norm
and checkpoints treat both alike. B starts at zero: a fresh adapter changes nothing."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

import torch
import torch.nn.functional as F

from .errors import bad_input
from .flat_views import flat_views

# Of the Tinker protocol, which has no field for it.
ALPHA = 32
# PEFT's prefix of every tensor's name.
_PREFIX = "base_model.model."
UNEMBED = "lm_head"


@dataclass(frozen=True)
class LoraSpec:
    """What is adapted, and how wide; `alpha / rank` scales what an adapter adds."""

    rank: int
    train_attn: bool = True
    train_mlp: bool = True
    train_unembed: bool = True
    alpha: int = ALPHA

    def as_state(self) -> dict:
        """For a checkpoint's state; `LoraSpec(**state)` reads it back."""
        return asdict(self)


def parse_lora(raw: Any, max_rank: int) -> tuple[LoraSpec | None, int | None]:
    """`lora_config` of create_model: (spec, seed); no spec for rank 0, which trains all weights.

    @raises WorkerError bad_input naming the field"""
    raw = {} if raw is None else raw
    if not isinstance(raw, dict):
        raise bad_input("must be an object", "lora_config")
    unknown = set(raw) - {"rank", "seed", "train_attn", "train_mlp", "train_unembed"}
    if unknown:
        raise bad_input("unknown key", f"lora_config.{sorted(unknown)[0]}")
    rank, seed = raw.get("rank", 0), raw.get("seed")
    if isinstance(rank, bool) or not isinstance(rank, int) or not 0 <= rank <= max_rank:
        raise bad_input(f"must be 1 to {max_rank}, or 0 to train all weights", "lora_config.rank")
    if seed is not None and (isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < 2**63):
        raise bad_input("must be a whole number from 0", "lora_config.seed")
    if rank == 0:
        return None, seed
    parts = {}
    for name in ("train_attn", "train_mlp", "train_unembed"):
        parts[name] = True if raw.get(name) is None else raw[name]
        if not isinstance(parts[name], bool):
            raise bad_input("must be true or false", f"lora_config.{name}")
    if not any(parts.values()):
        detail = "nothing is trained: one of train_attn, train_mlp and train_unembed must be true"
        raise bad_input(detail, "lora_config")
    return LoraSpec(rank, **parts), seed


@dataclass(frozen=True)
class LowRank:
    """One module's addition: a [rank, in], b [out, rank]."""

    a: torch.Tensor
    b: torch.Tensor
    scale: float

    def inner(self, x: torch.Tensor) -> torch.Tensor:
        """[tokens, rank], scaled."""
        return F.linear(x, self.a.to(x.dtype)) * self.scale

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        return F.linear(self.inner(x), self.b.to(x.dtype))

    def delta(self) -> torch.Tensor:
        """What it adds to the module's weight [out, in]."""
        return self.rows(0, self.b.shape[0])

    def rows(self, start: int, end: int) -> torch.Tensor:
        """Some rows of `delta`."""
        return (self.b[start:end] @ self.a) * self.scale


class LoraAdapter:
    """@param modules: (out, in) of each adapted linear module by its Hugging Face name, in a fixed order."""

    def __init__(self, spec: LoraSpec, modules: dict[str, tuple[int, int]], device: torch.device, with_grad: bool):
        self.spec = spec
        self._modules = modules
        shapes: dict[str, tuple[int, ...]] = {}
        for name, (outputs, inputs) in modules.items():
            shapes[f"{name}.lora_A.weight"] = (spec.rank, inputs)
            shapes[f"{name}.lora_B.weight"] = (outputs, spec.rank)
        self.flat = torch.zeros(sum(math.prod(shape) for shape in shapes.values()), device=device)
        self.grad_flat = torch.zeros_like(self.flat) if with_grad else None
        self._views = flat_views(self.flat, shapes, self.grad_flat)
        scale = spec.alpha / spec.rank
        self.low_ranks = {
            name: LowRank(self._views[f"{name}.lora_A.weight"], self._views[f"{name}.lora_B.weight"], scale)
            for name in modules
        }

    @torch.no_grad()
    def initialise(self, seed: int) -> None:
        """A uniform within ±1/√inputs, B zero; equal on every device for one seed."""
        generator = torch.Generator().manual_seed(seed)
        for name, low_rank in self.low_ranks.items():
            bound = 1 / math.sqrt(self._modules[name][1])
            low_rank.a.copy_((torch.rand(low_rank.a.shape, generator=generator) * 2 - 1) * bound)
            low_rank.b.zero_()

    def to_peft(self) -> dict[str, torch.Tensor]:
        """Copies by PEFT's names, on the CPU."""
        return {_PREFIX + name: view.detach().cpu().contiguous().clone() for name, view in self._views.items()}

    @torch.no_grad()
    def load_peft(self, tensors: dict[str, torch.Tensor]) -> None:
        """Copies PEFT tensors in. @raises WorkerError bad_input when they are not of this adapter's shape."""
        for name, view in self._views.items():
            source = tensors.get(_PREFIX + name)
            if source is None or source.shape != view.shape:
                raise bad_input(f"the adapter has no {name} of shape {tuple(view.shape)}", "path")
            view.copy_(source)


def adapted_modules(tensors: Iterable[str]) -> set[str]:
    """The modules that stored tensors of these names adapt."""
    return {name.removeprefix(_PREFIX).rsplit(".lora_", 1)[0] for name in tensors}


def low_ranks_of(spec: LoraSpec, stored: dict[str, torch.Tensor]) -> dict[str, LowRank]:
    """The additions that a stored adapter holds, by module."""
    scale = spec.alpha / spec.rank
    sides = (f"{_PREFIX}%s.lora_A.weight", f"{_PREFIX}%s.lora_B.weight")
    return {name: LowRank(*(stored[side % name] for side in sides), scale) for name in adapted_modules(stored)}


def peft_config(spec: LoraSpec, tensors: Iterable[str], base_model: str) -> dict:
    """PEFT's adapter_config.json for stored tensors of these names."""
    modules = adapted_modules(tensors)
    return {
        "peft_type": "LORA",
        "task_type": "CAUSAL_LM",
        "base_model_name_or_path": base_model,
        "r": spec.rank,
        "lora_alpha": spec.alpha,
        "lora_dropout": 0.0,
        "bias": "none",
        "fan_in_fan_out": False,
        "inference_mode": True,
        "init_lora_weights": True,
        "target_modules": sorted({name.rsplit(".", 1)[-1] for name in modules}),
    }
