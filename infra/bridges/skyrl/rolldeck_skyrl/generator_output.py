"""Finished rollouts as SkyRL's `GeneratorOutput`. Pure. What is left out (`rolldeck_driven.rows`) gets loss mask 0; its
reward then reads 0.0, which nothing is trained with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rolldeck_driven.batch import AskedBatch
from rolldeck_driven.errors import BatchError
from rolldeck_driven.rows import Finished, TrainedRow, batch_metrics, left_out, nothing_to_train, reward_of, rows_of

_CUT = frozenset({"length", "context_full"})


def generator_output(
    asked: AskedBatch, finished: Finished, trajectory_ids: Sequence[Any], *, step_wise: bool, pad_token_id: int
) -> dict[str, Any]:
    """One entry for each prompt of the input, in its order; with `step_wise` one for each row of each rollout.

    @param trajectory_ids: SkyRL's own, one for each prompt
    @raises BatchError when nothing can be trained, or a rollout has several rows without `step_wise`"""
    left = left_out(asked, finished)
    output: dict[str, Any] = {key: [] for key in _LISTS}
    for place, trajectory_id in zip(asked.places, trajectory_ids):
        rollout = finished.get(place)
        rows = rows_of(rollout, pad_token_id)
        if len(rows) > 1 and not step_wise:
            raise BatchError(
                f"rollout {rollout['rolloutId']} has {len(rows)} rows, as its context was rewritten or forked: set "
                "generator.step_wise_trajectories=true, and step_wise=True here"
            )
        trained = place[0] not in left.instances
        for number, row in enumerate(rows):
            _add(output, row, rollout, trajectory_id, last=number == len(rows) - 1, trained=trained)
    if not any(1 in mask for mask in output["loss_masks"]):
        raise nothing_to_train(asked, finished, left)
    output["rollout_metrics"] = batch_metrics(asked, finished, left)
    if not step_wise:
        output["is_last_step"] = None
    absent = ("trajectory_generation_times", "rollout_expert_indices", "pixel_values", "image_grid_thw")
    return {**output, **dict.fromkeys(absent)}


_LISTS = (
    "prompt_token_ids",
    "response_ids",
    "rewards",
    "loss_masks",
    "stop_reasons",
    "rollout_logprobs",
    "trajectory_ids",
    "is_last_step",
    "env_metrics",
)


def _add(
    output: dict[str, Any], row: TrainedRow, rollout: Any, trajectory_id: Any, *, last: bool, trained: bool
) -> None:
    ending = rollout["ending"] if rollout else None
    reward = reward_of(rollout)
    output["prompt_token_ids"].append(row.prompt)
    output["response_ids"].append(row.response)
    output["rewards"].append(0.0 if reward is None else reward)
    output["loss_masks"].append(row.mask if trained else [0] * len(row.mask))
    output["stop_reasons"].append("length" if last and ending in _CUT else "stop")
    output["rollout_logprobs"].append(row.logprobs)
    output["trajectory_ids"].append(trajectory_id)
    output["is_last_step"].append(last)
    output["env_metrics"].append({"rollout_id": rollout["rolloutId"] if rollout else None, "ending": ending})
