"""Batches as torch tensors, and a loss with its gradient, for the packages that are written in torch."""
from dataclasses import dataclass
from typing import Any, Callable

import numpy
import torch
from outside import Batch


@dataclass(frozen=True)
class Tensors:
    """One batch as float64 tensors, rows × T; `new` takes a gradient."""

    new: torch.Tensor
    old: torch.Tensor
    rollout: torch.Tensor
    ref: torch.Tensor
    mask: torch.Tensor
    advantages: torch.Tensor
    token_rewards: torch.Tensor
    index: numpy.ndarray


def tensors(batch: Batch) -> Tensors:
    """The batch in float64; what the losses multiply by is the row's advantage at each of its tokens."""

    def tensor(values: Any) -> torch.Tensor:
        return torch.tensor(values, dtype=torch.float64)

    mask = tensor(batch.mask)
    return Tensors(
        new=tensor(batch.new).requires_grad_(True),
        old=tensor(batch.old),
        rollout=tensor(batch.rollout),
        ref=tensor(batch.ref),
        mask=mask,
        advantages=tensor(batch.advantages).unsqueeze(-1).expand_as(mask).contiguous(),
        token_rewards=tensor(batch.reward_per_token()),
        index=numpy.array([str(group) for group in batch.groups], dtype=object),
    )


def with_gradient(batch: Batch, loss: Callable[[Tensors], torch.Tensor]) -> dict[str, Any]:
    """The loss of a batch and its gradient with respect to the log-probs under training."""
    values = tensors(batch)
    total = loss(values)
    (gradient,) = torch.autograd.grad(total, values.new, allow_unused=True)
    if gradient is None:
        gradient = torch.zeros_like(values.new)
    return {"value": total.item(), "gradient": gradient}
