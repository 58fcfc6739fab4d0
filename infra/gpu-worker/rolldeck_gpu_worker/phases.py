"""How fast each kind of work went, and how much of the device's arithmetic it was.

Definitions, which the run's charts repeat: *prefill* is sampling steps that read prompts, and the prompt tokens that they read;
*decode* is the other sampling steps, and the tokens they drew; *forward* is passes without a gradient, and all tokens of their
rows; *update* is forward and backward passes and optimizer steps, and all tokens of their rows. MFU is the floating-point
operations of the update's tokens ÷ (its seconds × the device's peak), recomputation not counted (arXiv:2204.02311, appendix B)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch

from .model_config import ModelConfig


@dataclass
class Phase:
    """Totals that only grow."""

    tokens: int = 0
    seconds: float = 0.0
    flops: float = 0.0

    def add(self, tokens: int, seconds: float, flops: float = 0.0) -> None:
        self.tokens += tokens
        self.seconds += seconds
        self.flops += flops


class StepRates:
    """Rates between one call and the next; what there was none of is left out, never 0."""

    def __init__(self) -> None:
        self._seen: dict[str, tuple[int, float, float]] = {}

    def since_last(self, phases: Mapping[str, Phase], peak_flops: float | None) -> dict[str, float]:
        """`<phase>_tokens_per_s` of each, and `mfu` of `update` where the device's peak is known.

        @param peak_flops: floating-point operations a second"""
        rates: dict[str, float] = {}
        for name, phase in phases.items():
            tokens, seconds, flops = self._seen.get(name, (0, 0.0, 0.0))
            self._seen[name] = (phase.tokens, phase.seconds, phase.flops)
            spent = phase.seconds - seconds
            if phase.tokens == tokens or spent <= 0:
                continue
            rates[f"{name}_tokens_per_s"] = (phase.tokens - tokens) / spent
            if name == "update" and peak_flops is not None:
                rates["mfu"] = (phase.flops - flops) / (spent * peak_flops)
        return rates


def update_flops(config: ModelConfig, parameters: int, lengths: Sequence[int], adapted: bool) -> float:
    """Of a forward and a backward pass over rows of these lengths: Σ T·(6·N + 6·layers·heads·head_dim·T).

    N: parameters that tokens are multiplied with, so an untied input embedding is not one of them. Under an adapter the frozen
    weights have no gradient of their own: 4·N. The attention's part counts what causality leaves of it, a half."""
    if not config.tied:
        parameters -= config.vocab_size * config.hidden_size
    per_token = (4 if adapted else 6) * parameters
    attention = 6 * config.layers * config.heads * config.head_dim
    return float(sum(length * (per_token + attention * length) for length in lengths))


# Dense peak in 10¹² operations a second, by the name the driver gives, from the makers' data sheets: (bfloat16, float32). A name
# that is not here, which a part of a partitioned device has, has no known peak.
_PEAKS = {
    r"NVIDIA B200": (2250.0, None),
    r"NVIDIA H200": (989.0, 67.0),
    r"NVIDIA H100 80GB HBM3": (989.0, 67.0),
    r"NVIDIA H100 PCIe": (756.0, 51.0),
    r"NVIDIA A100-(SXM4|PCIE)-\d+GB|NVIDIA A100 80GB PCIe": (312.0, 19.5),
}


def peak_flops(device_name: str | None, dtype: torch.dtype) -> float | None:
    """Operations a second of a device in `dtype`; None where that is not known: it is never guessed."""
    for pattern, (bfloat16, float32) in _PEAKS.items():
        if device_name is not None and re.fullmatch(pattern, device_name):
            peak = bfloat16 if dtype == torch.bfloat16 else float32 if dtype == torch.float32 else None
            return None if peak is None else peak * 1e12
    return None
