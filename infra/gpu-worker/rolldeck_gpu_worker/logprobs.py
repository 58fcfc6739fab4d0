"""Log-probabilities of targets from hidden states, in chunks of tokens, so that the full logits matrix never exists.

The backward pass recomputes each chunk's logits instead of keeping them."""

from __future__ import annotations

import torch

# Bounds a chunk's logits to about this many floats.
_CHUNK_FLOATS = 1 << 24


class _TargetLogprobs(torch.autograd.Function):
    @staticmethod
    def forward(ctx, hidden, head, targets, temperature, with_entropy):
        size = max(1, _CHUNK_FLOATS // head.shape[0])
        logprobs = hidden.new_empty(hidden.shape[0])
        normalisers = hidden.new_empty(hidden.shape[0])
        entropies = hidden.new_zeros(hidden.shape[0])
        for start in range(0, hidden.shape[0], size):
            part = slice(start, start + size)
            logits = torch.mm(hidden[part], head.t()) / temperature
            normalisers[part] = torch.logsumexp(logits, dim=-1)
            logprobs[part] = logits.gather(1, targets[part, None]).squeeze(1) - normalisers[part]
            if with_entropy:
                logits -= normalisers[part, None]
                entropies[part] = -(logits.exp() * logits).sum(-1)
        ctx.save_for_backward(hidden, head, targets, normalisers, entropies)
        ctx.temperature, ctx.with_entropy, ctx.size = temperature, with_entropy, size
        return logprobs, entropies

    @staticmethod
    def backward(ctx, grad_logprobs, grad_entropies):
        hidden, head, targets, normalisers, entropies = ctx.saved_tensors
        grad_hidden = torch.empty_like(hidden)
        grad_head = torch.zeros_like(head)
        for start in range(0, hidden.shape[0], ctx.size):
            part = slice(start, start + ctx.size)
            logs = torch.mm(hidden[part], head.t()) / ctx.temperature - normalisers[part, None]
            grad = logs.exp()
            if ctx.with_entropy:
                # dH/dlogit = -p (log p + H)
                through_entropy = grad * (logs + entropies[part, None]) * grad_entropies[part, None]
                grad = -grad * grad_logprobs[part, None] - through_entropy
            else:
                grad *= -grad_logprobs[part, None]
            grad.scatter_add_(1, targets[part, None], grad_logprobs[part, None])
            grad /= ctx.temperature
            torch.mm(grad, head, out=grad_hidden[part])
            grad_head.addmm_(grad.t(), hidden[part])
        return grad_hidden, grad_head, None, None, None


def target_logprobs(
    hidden: torch.Tensor, head: torch.Tensor, targets: torch.Tensor, temperature: float, with_entropy: bool = False
) -> tuple[torch.Tensor, torch.Tensor]:
    """log softmax(logits / temperature) at each target, and the entropies (zeros unless asked for)."""
    return _TargetLogprobs.apply(hidden, head, targets, temperature, with_entropy)
