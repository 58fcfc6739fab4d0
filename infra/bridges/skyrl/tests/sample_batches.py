"""Input batches as SkyRL writes them, small."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from rolldeck_driven.batch import COLUMN


def input_batch(groups: int = 2, samples: int = 2, step: int = 1, phase: str = "train") -> dict[str, Any]:
    """What `prepare_generator_input` gives for rows whose uid is their place in the data set."""
    places = [(group, sample) for group in range(groups) for sample in range(samples)]
    return {
        "prompts": [[{"role": "user", "content": "?"}] for _ in places],
        "env_classes": ["rolldeck" for _ in places],
        "env_extras": [{COLUMN: {"task_set": 0, "index": 10 + group}} for group, _ in places],
        "sampling_params": None,
        "trajectory_ids": [SimpleNamespace(instance_id=str(group), repetition_id=sample) for group, sample in places],
        "batch_metadata": SimpleNamespace(global_step=step, training_phase=phase),
    }
