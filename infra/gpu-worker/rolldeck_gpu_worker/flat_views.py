"""Named tensors as views of one flat buffer."""

from __future__ import annotations

import math

import torch


def flat_views(
    flat: torch.Tensor, shapes: dict[str, tuple[int, ...]], grad_flat: torch.Tensor | None
) -> dict[str, torch.Tensor]:
    """Views in the order of `shapes`; with `grad_flat` they are leaves whose gradients accumulate there."""
    views: dict[str, torch.Tensor] = {}
    offset = 0
    for name, shape in shapes.items():
        size = math.prod(shape)
        view = flat[offset : offset + size].view(shape)
        if grad_flat is not None:
            view = view.detach().requires_grad_()
            view.grad = grad_flat[offset : offset + size].view(shape)
        views[name] = view
        offset += size
    return views
