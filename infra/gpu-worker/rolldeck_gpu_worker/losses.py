"""Named token losses, summed. Denominators are the caller's: they arrive inside advantages and weights.

Every loss reads `weights` as a mask first: a token with weight 0 contributes exactly 0 whatever else it carries. Elsewhere the
weight multiplies the token's whole term, with its KL penalty and entropy bonus. Log ratios are clamped to ±20, beyond which a
term has no gradient, so that nothing overflows. The numbers equal those of packages/rl (losses.ts, kl.ts)."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch

from .errors import bad_input

_LOG_RATIO_LIMIT = 20.0


@dataclass(frozen=True)
class TokenInputs:
    """One entry per packed token. `logprobs` are those that the ratio compares with, the sampler's as a rule;
    `ref_logprobs` a reference policy's, when given; `row_of` the token's row, all tokens of one row when None."""

    weights: torch.Tensor
    logprobs: torch.Tensor
    advantages: torch.Tensor
    ref_logprobs: torch.Tensor | None
    row_of: torch.Tensor | None = None


Loss = Callable[[torch.Tensor, TokenInputs, Mapping[str, float]], tuple[torch.Tensor, torch.Tensor]]


def _ratio(lp: torch.Tensor, inputs: TokenInputs) -> torch.Tensor:
    return torch.exp(torch.clamp(lp - inputs.logprobs, -_LOG_RATIO_LIMIT, _LOG_RATIO_LIMIT))


def _bounds(config: Mapping[str, float]) -> tuple[float, float]:
    return config.get("clip_low_threshold", 0.8), config.get("clip_high_threshold", 1.2)


def _cross_entropy(lp: torch.Tensor, inputs: TokenInputs, _: Mapping[str, float]) -> tuple[torch.Tensor, torch.Tensor]:
    return -lp * inputs.weights, torch.zeros_like(lp, dtype=torch.bool)


def _importance_sampling(
    lp: torch.Tensor, inputs: TokenInputs, config: Mapping[str, float]
) -> tuple[torch.Tensor, torch.Tensor]:
    ratio = _ratio(lp, inputs)
    # A cap on the ratio bounds a token's weight (truncated importance sampling); its gradient is the capped weight's.
    cap = config.get("tis_cap")
    if cap is None:
        return -ratio * inputs.advantages, torch.zeros_like(lp, dtype=torch.bool)
    weight = ratio.detach().clamp(max=cap)
    return -weight * inputs.advantages * torch.exp(lp - lp.detach()), ratio.detach() > cap


def _pessimistic(
    ratio: torch.Tensor, advantages: torch.Tensor, config: Mapping[str, float]
) -> tuple[torch.Tensor, torch.Tensor]:
    low, high = _bounds(config)
    loss = -torch.minimum(ratio * advantages, torch.clamp(ratio, low, high) * advantages)
    return loss, (ratio < low) | (ratio > high)


def _ppo(lp: torch.Tensor, inputs: TokenInputs, config: Mapping[str, float]) -> tuple[torch.Tensor, torch.Tensor]:
    advantages = inputs.advantages
    loss, clipped = _pessimistic(_ratio(lp, inputs), advantages, config)
    bound = config.get("dual_clip_c")
    if bound is not None:
        loss = torch.where(advantages < 0, torch.minimum(loss, -bound * advantages), loss)
    return loss, clipped


def _cispo(lp: torch.Tensor, inputs: TokenInputs, config: Mapping[str, float]) -> tuple[torch.Tensor, torch.Tensor]:
    """arXiv:2506.13585: the clipped ratio weighs the gradient, so that a clipped token keeps a bounded one."""
    low, high = _bounds(config)
    ratio = _ratio(lp, inputs).detach()
    return -torch.clamp(ratio, low, high) * inputs.advantages * lp, (ratio < low) | (ratio > high)


def _gspo(lp: torch.Tensor, inputs: TokenInputs, config: Mapping[str, float]) -> tuple[torch.Tensor, torch.Tensor]:
    """GSPO-token (arXiv:2507.18071): PPO with the geometric mean of the row's ratios in place of each token's."""
    gaps = torch.where(inputs.weights != 0, lp.detach() - inputs.logprobs, 0.0)
    mean = _row_mean(gaps, inputs).clamp(-_LOG_RATIO_LIMIT, _LOG_RATIO_LIMIT)
    return _pessimistic(torch.exp(lp - lp.detach() + mean), inputs.advantages, config)


def _row_mean(values: torch.Tensor, inputs: TokenInputs) -> torch.Tensor:
    """Mean over the trained tokens of each token's row; `values` are 0 elsewhere."""
    trained = (inputs.weights != 0).to(values.dtype)
    if inputs.row_of is None:
        return (values.sum() / trained.sum().clamp(min=1)).expand_as(values)
    rows = int(inputs.row_of.max()) + 1
    sums = values.new_zeros(rows).index_add(0, inputs.row_of, values)
    counts = values.new_zeros(rows).index_add(0, inputs.row_of, trained)
    return (sums / counts.clamp(min=1))[inputs.row_of]


losses: dict[str, Loss] = {
    "cross_entropy": _cross_entropy,
    "importance_sampling": _importance_sampling,
    "ppo": _ppo,
    "cispo": _cispo,
    "gspo": _gspo,
}

# What each setting may be; infinity and NaN never.
_positive, _not_negative = (lambda value: value > 0), (lambda value: value >= 0)
_COMMON = {"temperature": _positive, "micro_batch_tokens": _positive}
_EXTRAS = {"kl_coef": _not_negative, "kl_estimator": lambda value: value in (1, 2, 3), "entropy_coef": _not_negative}
_CLIP = {"clip_low_threshold": _not_negative, "clip_high_threshold": _positive}
loss_settings: dict[str, dict[str, Callable[[float], bool]]] = {
    "cross_entropy": _COMMON,
    "importance_sampling": {**_COMMON, **_EXTRAS, "tis_cap": _positive},
    "ppo": {**_COMMON, **_EXTRAS, **_CLIP, "dual_clip_c": lambda value: value > 1},
    "cispo": {**_COMMON, **_EXTRAS, **_CLIP},
    "gspo": {**_COMMON, **_EXTRAS, **_CLIP},
}


def check_loss(name: str, config: Mapping[str, float]) -> None:
    """@raises WorkerError bad_input for an unknown loss, an unknown setting or a value out of range."""
    if name not in losses:
        raise bad_input(f"unknown loss {name!r}; known: {', '.join(losses)}", "loss_fn")
    known = loss_settings[name]
    for key, value in config.items():
        if key not in known:
            raise bad_input(f"{name} has no setting {key!r}; known: {', '.join(known)}", f"loss_fn_config.{key}")
        # A whole number of JSON may be too large for a float: it compares all the same.
        if not known[key](value) or value > sys.float_info.max:
            raise bad_input(f"{value} is out of range", f"loss_fn_config.{key}")
    low, high = _bounds(config)
    if low > high:
        raise bad_input("clip_low_threshold exceeds clip_high_threshold", "loss_fn_config.clip_low_threshold")


def _kl(lp: torch.Tensor, ref_logprobs: torch.Tensor, estimator: int) -> torch.Tensor:
    """Schulman's k1, k2 and k3 of KL(policy ‖ reference), in nats."""
    gap = torch.clamp(lp - ref_logprobs, -_LOG_RATIO_LIMIT, _LOG_RATIO_LIMIT)
    if estimator == 1:
        return gap
    return gap * gap / 2 if estimator == 2 else torch.exp(-gap) + gap - 1


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
    if config.get("kl_coef") and inputs.ref_logprobs is not None:
        loss = loss + config["kl_coef"] * _kl(safe_lp, inputs.ref_logprobs, int(config.get("kl_estimator", 3)))
    if config.get("entropy_coef"):
        loss = loss - config["entropy_coef"] * entropies
    return torch.where(trained, loss * inputs.weights, 0.0), clipped & trained
