"""From logits to tokens. Seeded draws depend on (seed, sample, position) alone, never on what else is in the batch.

The reported log-probability is that of softmax(logits / temperature) over the whole vocabulary: exactly what the
trainer recomputes when its loss_fn_config carries the same `temperature`. At temperature 0 (greedy) it is the
untempered one; top_p and top_k restrict what may be drawn without changing what is reported."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True)
class SamplingParams:
    max_tokens: int
    temperature: float
    top_p: float
    top_k: int
    seed: int
    stop_tokens: frozenset[int]
    stop_strings: tuple[bytes, ...]


def _mix(x: np.ndarray) -> np.ndarray:
    """splitmix64's finaliser."""
    with np.errstate(over="ignore"):
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return x ^ (x >> np.uint64(31))


def uniforms(seeds: np.ndarray, samples: np.ndarray, positions: np.ndarray) -> np.ndarray:
    """Uniform numbers in [0, 1), one per row, from uint64 seeds, sample indices and token positions."""
    with np.errstate(over="ignore"):
        stream = _mix(seeds + _GOLDEN * (samples.astype(np.uint64) + np.uint64(1)))
        bits = _mix(stream + _GOLDEN * (positions.astype(np.uint64) + np.uint64(1)))
    return (bits >> np.uint64(11)).astype(np.float64) / float(1 << 53)


def draw(
    logits: torch.Tensor, params: list[SamplingParams], samples: list[int], positions: list[int]
) -> tuple[np.ndarray, np.ndarray]:
    """Draws one token per row of logits [rows, vocab]; returns (tokens, log-probabilities)."""
    device = logits.device
    temperatures = np.asarray([p.temperature for p in params], np.float32)
    greedy = temperatures == 0
    scale = torch.from_numpy(np.where(greedy, 1.0, temperatures).astype(np.float32)).to(device)
    logprobs = torch.log_softmax(logits / scale[:, None], dim=-1)
    weights = torch.exp(logprobs)
    if any(p.top_k > 0 or p.top_p < 1 for p in params):
        weights = _restrict(weights, params)
    cumulative = torch.cumsum(weights.double(), dim=-1)
    seeds = np.asarray([p.seed for p in params], np.uint64)
    u = torch.from_numpy(uniforms(seeds, np.asarray(samples), np.asarray(positions))).to(device)
    # The first token whose cumulative weight exceeds u·total: never one of weight 0.
    points = (u * cumulative[:, -1])[:, None]
    tokens = torch.searchsorted(cumulative, points, right=True).squeeze(1).clamp_(max=logits.shape[1] - 1)
    if greedy.any():
        tokens = torch.where(torch.from_numpy(greedy).to(device), logits.argmax(-1), tokens)
    chosen = logprobs.gather(1, tokens[:, None]).squeeze(1)
    return tokens.cpu().numpy(), chosen.cpu().numpy()


def _restrict(weights: torch.Tensor, params: list[SamplingParams]) -> torch.Tensor:
    """Zeroes what top_k and top_p exclude; the token that crosses top_p stays in."""
    vocab = weights.shape[1]
    k = torch.tensor([p.top_k if p.top_k > 0 else vocab for p in params], device=weights.device)
    p = torch.tensor([p.top_p for p in params], device=weights.device)
    ordered, indices = weights.sort(dim=-1, descending=True, stable=True)
    before = ordered.cumsum(-1) - ordered
    ranks = torch.arange(vocab, device=weights.device)
    keep = (ranks[None, :] < k[:, None]) & (before < p[:, None])
    return torch.zeros_like(weights).scatter(1, indices, torch.where(keep, ordered, 0.0))
