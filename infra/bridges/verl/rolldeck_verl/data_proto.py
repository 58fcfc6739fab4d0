"""Finished rollouts as the `DataProto` that VeRL's trainer takes from an agent-loop manager. What is left out
(`rolldeck_driven.rows`) is one token of padding with response mask 0; its reward reads 0.0 where it has none, which
nothing is trained with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from rolldeck_driven.batch import AskedBatch
from rolldeck_driven.errors import BatchError
from rolldeck_driven.rows import Finished, TrainedRow, batch_metrics, left_out, nothing_to_train, reward_of, rows_of
from verl.protocol import DataProto
from verl.utils.model import compute_position_id_with_mask


@dataclass(frozen=True)
class Widths:
    """VeRL's `rollout.prompt_length` and `rollout.response_length`: every batch is as wide, so that losses which divide
    by the width mean the same at every step."""

    prompt: int
    response: int


def data_proto(asked: AskedBatch, finished: Finished, uids: Any, widths: Widths, pad_token_id: int) -> DataProto:
    """One row for each row of the trainer's batch, in its order. B rows, P and R the widths.

    Tensors: `prompts` [B, P] padded on the left, `responses`, `response_mask`, `rollout_log_probs` and `rm_scores`
    [B, R] on the right, `input_ids`, `attention_mask` and `position_ids` [B, P + R]. The reward stands at the last
    response token.

    @param uids: VeRL's own, [B]
    @raises BatchError when nothing can be trained, a row does not fit, or a rollout has several rows"""
    left = left_out(asked, finished)
    rows, rewards = [], []
    for place in asked.places:
        rollout = finished.get(place)
        found = [row for row in rows_of(rollout, pad_token_id) if 1 in row.mask and place[0] not in left.instances]
        # Of what is left out no token is needed, whatever its length.
        rows.append(_only_row(rollout, found, widths) if found else rows_of(None, pad_token_id)[0])
        rewards.append(reward_of(rollout) or 0.0)
    if not any(1 in row.mask for row in rows):
        raise nothing_to_train(asked, finished, left)
    rollouts = [finished.get(place) for place in asked.places]
    columns = {
        "uid": np.asarray(uids, dtype=object),
        "__num_turns__": np.array([_turns(row) for row in rows], dtype=np.int32),
        # The trainer reads it of every row.
        "multi_modal_inputs": _objects({} for _ in rows),
        "rolldeck_rollout": _objects(rollout["rolloutId"] if rollout else None for rollout in rollouts),
        "rolldeck_ending": _objects(rollout["ending"] if rollout else None for rollout in rollouts),
    }
    meta = {"timing": batch_metrics(asked, finished, left), "reward_extra_keys": []}
    return DataProto.from_dict(_tensors(rows, rewards, widths, pad_token_id), non_tensors=columns, meta_info=meta)


def _only_row(rollout: Any, rows: list[TrainedRow], widths: Widths) -> TrainedRow:
    if len(rows) > 1:
        raise BatchError(
            f"rollout {rollout['rolloutId']} has {len(rows)} rows, as its context was rewritten or forked; VeRL takes "
            "one for each sample: train this task set with SkyRL's step-wise mode, or with tools that leave the context"
        )
    [row] = rows
    for name, tokens, width in (("prompt", row.prompt, widths.prompt), ("response", row.response, widths.response)):
        if len(tokens) > width:
            raise BatchError(
                f"rollout {rollout['rolloutId']}: its {name} has {len(tokens)} tokens and VeRL's "
                f"rollout.{name}_length is {width}: raise data.max_{name}_length, or lower the run's "
                "agent.maxContextTokens; nothing is cut here"
            )
    return row


def _tensors(rows: list[TrainedRow], rewards: list[float], widths: Widths, pad: int) -> dict[str, torch.Tensor]:
    def left(row: TrainedRow, values: list, fill) -> list:
        return [fill] * (widths.prompt - len(row.prompt)) + values

    def right(row: TrainedRow, values: list, fill) -> list:
        return values + [fill] * (widths.response - len(row.response))

    prompts = torch.tensor([left(row, row.prompt, pad) for row in rows])
    responses = torch.tensor([right(row, row.response, pad) for row in rows])
    seen = [left(row, [1] * len(row.prompt), 0) + right(row, [1] * len(row.response), 0) for row in rows]
    attention_mask = torch.tensor(seen)
    scores = torch.zeros(len(rows), widths.response)
    for number, (row, reward) in enumerate(zip(rows, rewards)):
        scores[number, len(row.response) - 1] = reward
    return {
        "prompts": prompts,
        "responses": responses,
        "response_mask": torch.tensor([right(row, row.mask, 0) for row in rows]),
        "input_ids": torch.cat([prompts, responses], dim=1),
        "attention_mask": attention_mask,
        "position_ids": compute_position_id_with_mask(attention_mask),
        "rollout_log_probs": torch.tensor([right(row, row.logprobs, 0.0) for row in rows], dtype=torch.float32),
        "rm_scores": scores,
    }


def _turns(row: TrainedRow) -> int:
    """The prompt, and every stretch of sampled or of observed tokens after it."""
    return 2 + sum(one != other for one, other in zip(row.mask, row.mask[1:]))


def _objects(values: Any) -> np.ndarray:
    listed = list(values)
    array = np.empty(len(listed), dtype=object)
    array[:] = listed
    return array
