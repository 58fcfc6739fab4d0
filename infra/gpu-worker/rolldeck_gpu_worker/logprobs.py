"""Log-probabilities of targets from hidden states, in chunks of tokens, so that the full logits matrix never exists. They, and
all gradients of weights, are float32 whatever the hidden states are; products are computed as those are.

The backward pass recomputes each chunk's logits instead of keeping them."""

from __future__ import annotations

import torch

from .lora import LowRank

# Bounds a chunk's logits to about this many floats.
_CHUNK_FLOATS = 1 << 24


class _TargetLogprobs(torch.autograd.Function):
    """Logits of a chunk are hidden @ headᵀ, plus inner @ upᵀ when the head is adapted (inner [tokens, rank])."""

    @staticmethod
    def forward(ctx, hidden, head, inner, up, targets, temperature, with_entropy):
        size = max(1, _CHUNK_FLOATS // head.shape[0])
        logprobs = hidden.new_empty(hidden.shape[0], dtype=torch.float32)
        normalisers = torch.empty_like(logprobs)
        entropies = torch.zeros_like(logprobs)
        for start in range(0, hidden.shape[0], size):
            part = slice(start, start + size)
            logits = _logits(hidden, head, inner, up, part) / temperature
            normalisers[part] = torch.logsumexp(logits, dim=-1)
            logprobs[part] = logits.gather(1, targets[part, None]).squeeze(1) - normalisers[part]
            if with_entropy:
                logits -= normalisers[part, None]
                entropies[part] = -(logits.exp() * logits).sum(-1)
        ctx.save_for_backward(hidden, head, inner, up, targets, normalisers, entropies)
        ctx.temperature, ctx.with_entropy, ctx.size = temperature, with_entropy, size
        return logprobs, entropies

    @staticmethod
    def backward(ctx, grad_logprobs, grad_entropies):
        hidden, head, inner, up, targets, normalisers, entropies = ctx.saved_tensors
        grad_hidden = torch.empty_like(hidden)
        # A frozen head needs none.
        grad_head = torch.zeros_like(head) if ctx.needs_input_grad[1] else None
        grad_inner = None if inner is None else torch.empty_like(inner)
        grad_up = None if up is None else torch.zeros_like(up)
        for start in range(0, hidden.shape[0], ctx.size):
            part = slice(start, start + ctx.size)
            logs = _logits(hidden, head, inner, up, part) / ctx.temperature - normalisers[part, None]
            grad = logs.exp()
            if ctx.with_entropy:
                # dH/dlogit = -p (log p + H)
                through_entropy = grad * (logs + entropies[part, None]) * grad_entropies[part, None]
                grad = -grad * grad_logprobs[part, None] - through_entropy
            else:
                grad *= -grad_logprobs[part, None]
            grad.scatter_add_(1, targets[part, None], grad_logprobs[part, None])
            grad /= ctx.temperature
            grad = grad.to(hidden.dtype)
            torch.mm(grad, head.to(hidden.dtype), out=grad_hidden[part])
            if grad_head is not None:
                _add_product(grad_head, grad, hidden[part])
            if inner is not None:
                torch.mm(grad, up.to(hidden.dtype), out=grad_inner[part])
                _add_product(grad_up, grad, inner[part])
        return grad_hidden, grad_head, grad_inner, grad_up, None, None, None


def _logits(hidden, head, inner, up, part: slice) -> torch.Tensor:
    logits = torch.mm(hidden[part], head.to(hidden.dtype).t())
    return (logits if inner is None else logits.addmm_(inner[part], up.to(hidden.dtype).t())).float()


def _add_product(total: torch.Tensor, grad: torch.Tensor, x: torch.Tensor) -> None:
    """Adds gradᵀ x; chunks add up as `total` is, not as the factors are."""
    if total.dtype == x.dtype:
        total.addmm_(grad.t(), x)
    else:
        total += grad.t() @ x


def target_logprobs(
    hidden: torch.Tensor,
    head: torch.Tensor,
    targets: torch.Tensor,
    temperature: float,
    with_entropy: bool = False,
    low_rank: LowRank | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """log softmax(logits / temperature) at each target, and the entropies (zeros unless asked for).

    @param low_rank: what an adapter adds to the head"""
    inner, up = (None, None) if low_rank is None else (low_rank.inner(hidden), low_rank.b)
    return _TargetLogprobs.apply(hidden, head, inner, up, targets, temperature, with_entropy)
