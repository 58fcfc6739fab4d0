"""AdamW over one flat buffer, with global-norm clipping. Moments are flat buffers too, of the weights' own type or, to
save half of their memory, bfloat16. Arithmetic is in the weights' type either way, some of the buffer at a time, so that no
copy of the whole is made."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

from .errors import bad_input


@dataclass(frozen=True)
class AdamParams:
    learning_rate: float = 1e-4
    beta1: float = 0.9
    beta2: float = 0.95
    eps: float = 1e-12
    weight_decay: float = 0.0
    # 0 = no clipping.
    grad_clip_norm: float = 0.0


# Parameters in work at a time.
_CHUNK = 1 << 24
# A bfloat16 moment stays where a step would move it by less than 2⁻⁸ of itself, so it follows to within about 2⁻⁸ ÷ (1 − beta) of
# its value: 8 % at 0.95, 40 % here.
_MAX_BETA_BFLOAT16 = 0.99


def check_betas(params: AdamParams, moments: torch.dtype) -> None:
    """@raises WorkerError bad_input for what moments of this type can't follow"""
    for name in ("beta1", "beta2"):
        if moments == torch.bfloat16 and getattr(params, name) > _MAX_BETA_BFLOAT16:
            detail = f"must be at most {_MAX_BETA_BFLOAT16}: this worker keeps moments in bfloat16 (--optimizer-moments)"
            raise bad_input(detail, f"adam_params.{name}")


class AdamW:
    """Decay is decoupled and applies to every parameter; `updates` counts applied updates for bias correction.

    @param moments: what the moments are kept in; None = what the weights are"""

    def __init__(self, flat: torch.Tensor, moments: torch.dtype | None = None):
        self.mean = torch.zeros_like(flat, dtype=moments)
        self.square = torch.zeros_like(flat, dtype=moments)
        self.updates = 0

    @property
    def state_bytes(self) -> int:
        return sum(buffer.numel() * buffer.element_size() for buffer in (self.mean, self.square))

    @torch.no_grad()
    def step(self, flat: torch.Tensor, grad: torch.Tensor, params: AdamParams) -> tuple[float, bool]:
        """Applies one update in place; returns (norm before clipping, applied). A non-finite norm changes nothing."""
        norm = float(torch.linalg.vector_norm(grad))
        if not math.isfinite(norm):
            return norm, False
        clipped = params.grad_clip_norm > 0 and norm > params.grad_clip_norm
        self.updates += 1
        for start in range(0, len(flat), _CHUNK):
            part = slice(start, start + _CHUNK)
            g = grad[part] * (params.grad_clip_norm / norm) if clipped else grad[part]
            self._step_part(part, flat[part], g, params)
        return norm, True

    def _step_part(self, part: slice, flat: torch.Tensor, grad: torch.Tensor, params: AdamParams) -> None:
        # Views where they are of the weights' type already, copies where they are not.
        mean, square = self.mean[part].to(flat.dtype), self.square[part].to(flat.dtype)
        mean.lerp_(grad, 1 - params.beta1)
        square.mul_(params.beta2).addcmul_(grad, grad, value=1 - params.beta2)
        flat.mul_(1 - params.learning_rate * params.weight_decay)
        mean_scale = 1 - params.beta1**self.updates
        square_scale = 1 - params.beta2**self.updates
        denominator = (square / square_scale).sqrt_().add_(params.eps)
        flat.addcdiv_(mean, denominator, value=-params.learning_rate / mean_scale)
        if mean.dtype != self.mean.dtype:
            self.mean[part].copy_(mean)
            self.square[part].copy_(square)

    def reset(self) -> None:
        self.mean.zero_()
        self.square.zero_()
        self.updates = 0
