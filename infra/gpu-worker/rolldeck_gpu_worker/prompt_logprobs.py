"""Log-probabilities of a prompt's own tokens, at temperature 1."""

from __future__ import annotations

import numpy as np
import torch

from .logprobs import target_logprobs
from .packing import pack
from .policy_weights import PolicyWeights


@torch.no_grad()
def prompt_logprobs(weights: PolicyWeights, prompt: np.ndarray, top: int, last: int | None = None) -> dict:
    """`prompt_logprobs` (null for the first token) and, when asked, the `top` likeliest tokens at each position.

    @param last: of the prompt's last so many tokens only, null for those before"""
    hidden = weights.hidden(pack([prompt], weights.flat.device))
    result: dict = {"prompt_logprobs": [None]}
    if len(prompt) > 1:
        targets = torch.from_numpy(prompt[1:]).to(hidden.device)
        lp, _ = target_logprobs(hidden[:-1], weights.head, targets, 1.0)
        result["prompt_logprobs"] += lp.double().cpu().numpy().round(7).tolist()
    if top:
        rows: list = [None]
        for state in hidden[:-1]:
            best = torch.log_softmax((weights.head.to(state.dtype) @ state).float(), dim=-1).topk(min(top, weights.config.vocab_size))
            rows.append(list(zip(best.indices.tolist(), best.values.tolist(), strict=True)))
        result["topk_prompt_logprobs"] = rows
    if last is not None:
        skipped = len(prompt) - last
        result = {name: [None] * skipped + values[skipped:] for name, values in result.items()}
    return result
