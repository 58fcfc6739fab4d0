"""What sampler and trainer ask of a set of weights, whatever architecture runs them.

Invariant: every parameter is a view of `flat`, so a snapshot is one copy, the global gradient norm one reduction and an AdamW
step a handful of whole-buffer operations. With an adapter `flat` is frozen, and the adapter's buffer is trained. What is trained
is float32, and so are logits and all that is made of them; in between `compute` holds, to which weights are cast where they are
used, so that gradients come back to the float32 ones. What only samples is kept in `compute`."""

from __future__ import annotations

from abc import ABC, abstractmethod

import torch

from .attention import CachedStep
from .errors import bad_input
from .kv_rows import KvRows
from .lora import UNEMBED, LoraAdapter, LowRank
from .model_config import ModelConfig
from .packing import PackedBatch


class PolicyWeights(ABC):
    """@param with_grad: the weights themselves are trained; not together with an adapter."""

    # [vocab, hidden]
    head: torch.Tensor
    # Gradient checkpointing: of a layer only its input is kept for the backward pass, which computes the rest again.
    recompute: bool = False

    def __init__(self, config: ModelConfig, flat: torch.Tensor, with_grad: bool, adapter: LoraAdapter | None):
        self.config = config
        self.flat = flat
        self.adapter = adapter
        # Of hidden states and of what the sampler keeps.
        self.compute = flat.dtype
        self._own_grad = torch.zeros_like(flat) if with_grad else None

    @property
    def trained_flat(self) -> torch.Tensor:
        """The buffer that the optimizer updates."""
        return self.flat if self.adapter is None else self.adapter.flat

    @property
    def grad_flat(self) -> torch.Tensor | None:
        return self._own_grad if self.adapter is None else self.adapter.grad_flat

    @property
    def head_low_rank(self) -> LowRank | None:
        """The unembedding's addition, when it is adapted."""
        return None if self.adapter is None else self.adapter.low_ranks.get(UNEMBED)

    @abstractmethod
    def hidden(self, batch: PackedBatch) -> torch.Tensor:
        """Final hidden states [tokens, hidden] of a packed batch; differentiable."""

    @abstractmethod
    def _cached_hidden(self, cache: KvRows, step: CachedStep) -> torch.Tensor:
        """Final hidden states [rows, hidden] of each row's last token; the cache takes the step's keys and values."""

    @torch.inference_mode()
    def logits(self, cache: KvRows, step: CachedStep) -> torch.Tensor:
        """Logits [rows, vocab] after each row's last token."""
        hidden = self._cached_hidden(cache, step)
        logits = hidden @ self.head.to(hidden.dtype).t()
        return (logits if self.head_low_rank is None else logits + self.head_low_rank(hidden)).float()

    @abstractmethod
    def snapshot(self) -> PolicyWeights:
        """An independent copy for the sampler, with any adapter merged in; later updates do not reach it."""

    @abstractmethod
    def hf_views(self) -> dict[str, torch.Tensor]:
        """The views by Hugging Face name; a tied head has none, as there."""

    def to_hf(self) -> dict[str, torch.Tensor]:
        """Copies by Hugging Face name, on the CPU."""
        return {name: view.detach().cpu().contiguous().clone() for name, view in self.hf_views().items()}

    @torch.no_grad()
    def load_hf(self, tensors: dict[str, torch.Tensor]) -> None:
        """Copies Hugging Face tensors in. @raises WorkerError bad_input when a tensor is missing or misshapen."""
        targets = {name: view.detach() for name, view in self.hf_views().items()}
        missing = sorted(set(targets) - set(tensors))
        if missing:
            raise bad_input(f"weights lack {len(missing)} tensors, first {missing[0]}", "path")
        for name, target in targets.items():
            source = tensors[name]
            if source.shape != target.shape:
                raise bad_input(f"{name} has shape {tuple(source.shape)}, expected {tuple(target.shape)}", "path")
            target.copy_(source.to(target.dtype))

    @property
    def stored_file(self) -> str:
        """The name of a checkpoint's file of weights: what was trained, no more."""
        return "model.safetensors" if self.adapter is None else "adapter_model.safetensors"

    def to_stored(self) -> dict[str, torch.Tensor]:
        return self.to_hf() if self.adapter is None else self.adapter.to_peft()

    def load_stored(self, tensors: dict[str, torch.Tensor]) -> None:
        """@raises WorkerError bad_input for another shape"""
        if self.adapter is None:
            self.load_hf(tensors)
        else:
            self.adapter.load_peft(tensors)

    @torch.no_grad()
    def _add_deltas(self, merged: PolicyWeights) -> None:
        """Adds this adapter to the weights of a copy."""
        targets = merged.hf_views()
        for module, low_rank in self.adapter.low_ranks.items() if self.adapter else ():
            target = targets[f"{module}.weight"]
            target.copy_(target.float() + low_rank.delta())
