"""AdamW over one flat buffer, with global-norm clipping. Moments are flat buffers too."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class AdamParams:
    learning_rate: float = 1e-4
    beta1: float = 0.9
    beta2: float = 0.95
    eps: float = 1e-12
    weight_decay: float = 0.0
    # 0 = no clipping.
    grad_clip_norm: float = 0.0


class AdamW:
    """Decay is decoupled and applies to every parameter; `updates` counts applied updates for bias correction."""

    def __init__(self, flat: torch.Tensor):
        self.mean = torch.zeros_like(flat)
        self.square = torch.zeros_like(flat)
        self.updates = 0

    @torch.no_grad()
    def step(self, flat: torch.Tensor, grad: torch.Tensor, params: AdamParams) -> tuple[float, bool]:
        """Applies one update in place; returns (norm before clipping, applied). A non-finite norm changes nothing."""
        norm = float(torch.linalg.vector_norm(grad))
        if not math.isfinite(norm):
            return norm, False
        if params.grad_clip_norm > 0 and norm > params.grad_clip_norm:
            grad = grad * (params.grad_clip_norm / norm)
        self.updates += 1
        self.mean.lerp_(grad, 1 - params.beta1)
        self.square.mul_(params.beta2).addcmul_(grad, grad, value=1 - params.beta2)
        flat.mul_(1 - params.learning_rate * params.weight_decay)
        mean_scale = 1 - params.beta1**self.updates
        square_scale = 1 - params.beta2**self.updates
        denominator = (self.square / square_scale).sqrt_().add_(params.eps)
        flat.addcdiv_(self.mean, denominator, value=-params.learning_rate / mean_scale)
        return norm, True

    def reset(self) -> None:
        self.mean.zero_()
        self.square.zero_()
        self.updates = 0
