"""Small batches and finished rollouts as the API gives them, for tests of bridges."""

from __future__ import annotations

from typing import Any

from .batch import AskedBatch, GroupedRow, Instance, Place, ask_for


def asked(groups: int = 2, samples: int = 2, step: int = 1) -> AskedBatch:
    """Instances 10, 11, … of task set 0, group by group."""
    places = [(group, sample) for group in range(groups) for sample in range(samples)]
    rows = [GroupedRow(str(group), sample, Instance(0, 10 + group)) for group, sample in places]
    return ask_for(step, rows, group_field="groups", instance_field="instances[{}]")


def rollout(place: Place, reward: float | None = 1.0, rows: int = 1, ending: str = "answer") -> dict[str, Any]:
    """Two template tokens, two sampled ones, one observation, one sampled one; masked throughout without a reward."""
    kept = 0 if reward is None else 1
    row = {
        "tokens": [1, 2, 3, 4, 5, 6],
        "mask": [0, 0, kept, kept, 0, kept],
        "logprobs": [None, None, -0.5, -0.25, None, -1.0],
    }
    return {
        "rolloutId": f"r{place[0]}-{place[1]}",
        "taskSet": 0,
        "index": 10 + place[0],
        "instanceId": f"key-chain-train-{10 + place[0]}",
        "sample": place[1],
        "outcome": "completed" if reward is not None else "failed",
        "ending": ending,
        "reward": reward,
        "rows": [row] * rows,
    }


def finished(batch: AskedBatch, **changed: Any) -> dict[Place, dict[str, Any]]:
    """Every rollout of the batch, alike."""
    return {place: rollout(place, **changed) for place in batch.places}
