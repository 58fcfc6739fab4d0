"""Log-probabilities of given token rows under weights that nobody trains: what a reference policy thinks of a rollout."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from .base_models import BaseModel
from .datums import check_vocabulary, int_array
from .errors import bad_input
from .logprobs import target_logprobs
from .packing import first_fit_decreasing, pack
from .policy_weights import PolicyWeights


@dataclass(frozen=True)
class ScoreRequest:
    rows: list[np.ndarray]
    # Of the distribution that the tokens were sampled from.
    temperature: float


def parse_score_request(body: dict, base: BaseModel) -> ScoreRequest:
    """@raises WorkerError bad_input naming the field"""
    rows = body.get("rows")
    if not isinstance(rows, list) or not rows:
        raise bad_input("must be a non-empty list of token lists", "rows")
    temperature = body.get("temperature", 1.0)
    if isinstance(temperature, bool) or not isinstance(temperature, (int, float)) or not 0 < temperature < float("inf"):
        raise bad_input("must be above 0", "temperature")
    return ScoreRequest([_row(row, base, f"rows[{index}]") for index, row in enumerate(rows)], float(temperature))


def _row(row: Any, base: BaseModel, field: str) -> np.ndarray:
    tokens = int_array(row, field)
    if not 2 <= len(tokens) <= base.config.max_context + 1:
        raise bad_input(f"has {len(tokens)} tokens; 2 to {base.config.max_context + 1} are allowed", field)
    check_vocabulary(tokens, base.config.vocab_size, field)
    return tokens


def score(weights: PolicyWeights, request: ScoreRequest, budget: int) -> Generator[None, None, dict]:
    """`logprobs`: per row one number for each token after the first. Yields between micro-batches of `budget` tokens."""
    found: list = [None] * len(request.rows)
    for indices in first_fit_decreasing([len(row) - 1 for row in request.rows], budget):
        _micro_batch(weights, request, indices, found)
        yield
    return {"logprobs": found}


@torch.no_grad()
def _micro_batch(weights: PolicyWeights, request: ScoreRequest, indices: list[int], found: list) -> None:
    rows = [request.rows[index] for index in indices]
    batch = pack([row[:-1] for row in rows], weights.flat.device)
    targets = torch.from_numpy(np.concatenate([rows[place][1:] for place in batch.order])).to(weights.flat.device)
    lp, _ = target_logprobs(weights.hidden(batch), weights.head, targets, request.temperature)
    # JSON has no NaN: null says that there is no number.
    values = [value if np.isfinite(value) else None for value in lp.double().cpu().numpy().round(7).tolist()]
    for place, packed_index in enumerate(batch.order):
        found[indices[packed_index]] = values[batch.starts[place] : batch.starts[place + 1]]
