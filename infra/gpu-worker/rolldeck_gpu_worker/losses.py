"""Named token losses, summed. Denominators are the caller's: they arrive inside advantages and weights.

Every loss reads `weights` as a mask first: a token with weight 0 contributes exactly 0 whatever else it carries."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch

from .errors import bad_input


@dataclass(frozen=True)
class TokenInputs:
    """One entry per packed token. `logprobs` are the sampler's; `ref_logprobs` a reference policy's, when given."""

    weights: torch.Tensor
    logprobs: torch.Tensor
    advantages: torch.Tensor
    ref_logprobs: torch.Tensor | None


Loss = Callable[[torch.Tensor, TokenInputs, Mapping[str, float]], tuple[torch.Tensor, torch.Tensor]]


def _cross_entropy(lp: torch.Tensor, inputs: TokenInputs, _: Mapping[str, float]) -> tuple[torch.Tensor, torch.Tensor]:
    return -lp * inputs.weights, torch.zeros_like(lp, dtype=torch.bool)


def _importance_sampling(
    lp: torch.Tensor, inputs: TokenInputs, config: Mapping[str, float]
) -> tuple[torch.Tensor, torch.Tensor]:
    ratio = torch.exp(lp - inputs.logprobs)
    # A cap on the ratio bounds a token's weight (truncated importance sampling); its gradient is the capped weight's.
    cap = config.get("tis_cap")
    if cap is None:
        return -ratio * inputs.advantages, torch.zeros_like(lp, dtype=torch.bool)
    weight = ratio.detach().clamp(max=cap)
    return -weight * inputs.advantages * torch.exp(lp - lp.detach()), ratio.detach() > cap


def _ppo(lp: torch.Tensor, inputs: TokenInputs, config: Mapping[str, float]) -> tuple[torch.Tensor, torch.Tensor]:
    low, high = config.get("clip_low_threshold", 0.8), config.get("clip_high_threshold", 1.2)
    advantages = inputs.advantages
    ratio = torch.exp(lp - inputs.logprobs)
    clipped = torch.clamp(ratio, low, high)
    loss = -torch.minimum(ratio * advantages, clipped * advantages)
    bound = config.get("dual_clip_c")
    if bound is not None:
        loss = torch.where(advantages < 0, torch.minimum(loss, -bound * advantages), loss)
    return loss, (ratio < low) | (ratio > high)


losses: dict[str, Loss] = {"cross_entropy": _cross_entropy, "importance_sampling": _importance_sampling, "ppo": _ppo}

# Settings by loss, with the exclusive lower bound each value must exceed.
_COMMON = {"temperature": 0.0, "micro_batch_tokens": 0.0}
_EXTRAS = {"kl_coef": -1e-300, "entropy_coef": -1e-300}
loss_settings: dict[str, dict[str, float]] = {
    "cross_entropy": _COMMON,
    "importance_sampling": {**_COMMON, **_EXTRAS, "tis_cap": 0.0},
    "ppo": {**_COMMON, **_EXTRAS, "clip_low_threshold": -1e-300, "clip_high_threshold": 0.0, "dual_clip_c": 1.0},
}


def check_loss(name: str, config: Mapping[str, float]) -> None:
    """@raises WorkerError bad_input for an unknown loss, an unknown setting or a value out of range."""
    if name not in losses:
        raise bad_input(f"unknown loss {name!r}; known: {', '.join(losses)}", "loss_fn")
    known = loss_settings[name]
    for key, value in config.items():
        if key not in known:
            raise bad_input(f"{name} has no setting {key!r}; known: {', '.join(known)}", f"loss_fn_config.{key}")
        if not value > known[key] or value == float("inf"):
            raise bad_input(f"{value} is out of range", f"loss_fn_config.{key}")
    if config.get("clip_low_threshold", 0.8) > config.get("clip_high_threshold", 1.2):
        raise bad_input("clip_low_threshold exceeds clip_high_threshold", "loss_fn_config.clip_low_threshold")


def token_losses(
    name: str, lp: torch.Tensor, entropies: torch.Tensor, inputs: TokenInputs, config: Mapping[str, float]
) -> tuple[torch.Tensor, torch.Tensor]:
    """Per-token losses and whether each token was clipped; both are 0 where the weight is 0."""
    trained = inputs.weights != 0
    if name == "cross_entropy":
        loss, clipped = losses[name](lp, inputs, config)
        return torch.where(trained, loss, 0.0), clipped
    # Masked tokens may carry any sampler logprob: take them out before exp, so that no NaN or inf leaks into gradients.
    safe_lp = torch.where(trained, lp, 0.0)
    loss, clipped = losses[name](safe_lp, inputs, config)
    loss = loss * inputs.weights
    if config.get("kl_coef") and inputs.ref_logprobs is not None:
        gap = torch.clamp(safe_lp - inputs.ref_logprobs, -20, 20)
        loss = loss + config["kl_coef"] * inputs.weights * (torch.exp(-gap) + gap - 1)
    if config.get("entropy_coef"):
        loss = loss - config["entropy_coef"] * inputs.weights * entropies
    return torch.where(trained, loss, 0.0), clipped & trained
