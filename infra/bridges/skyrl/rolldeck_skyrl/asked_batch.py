"""SkyRL's `GeneratorInput` as a request of Rolldeck's. A row of SkyRL's data set names one instance of a run's task
set, in its column `rolldeck`: SkyRL never sees its prompt, which the task writes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rolldeck_driven.batch import COLUMN, AskedBatch, GroupedRow, ask_for, instance_named
from rolldeck_driven.errors import InputBatchError


def dataset_row(index: int, task_set: int = 0, env_class: str = "rolldeck") -> dict[str, Any]:
    """One row for SkyRL's `PromptDataset` (JSON Lines or Parquet). The prompt only fills its column."""
    prompt = [{"role": "user", "content": f"instance {index} of task set {task_set}"}]
    return {"prompt": prompt, "env_class": env_class, COLUMN: {"task_set": task_set, "index": index}}


def asked_batch(input_batch: Mapping[str, Any]) -> AskedBatch:
    """Groups by SkyRL's uid; samples are numbered by its repetitions. @raises InputBatchError"""
    metadata = input_batch.get("batch_metadata")
    if metadata is None:
        raise InputBatchError("batch_metadata: is missing; it tells the trainer's step")
    if metadata.training_phase != "train":
        raise InputBatchError(
            "batch_metadata.training_phase: a driven run has training instances only; "
            "set trainer.eval_interval=-1 and trainer.eval_before_train=false, and launch an evaluation in Rolldeck"
        )
    if metadata.global_step < 1:
        raise InputBatchError(f"batch_metadata.global_step: is {metadata.global_step}; training steps count from 1")
    ids, extras = input_batch.get("trajectory_ids"), input_batch.get("env_extras")
    rows = len(input_batch["prompts"])
    for name, column in (("trajectory_ids", ids), ("env_extras", extras)):
        if column is None or len(column) != rows:
            raise InputBatchError(f"{name}: needs one entry for each of {rows} prompts")
    grouped = [
        GroupedRow(id.instance_id, id.repetition_id, _instance_of(row, extra))
        for row, (id, extra) in enumerate(zip(ids, extras))
    ]
    field = f"env_extras[{{}}].{COLUMN}"
    return ask_for(metadata.global_step, grouped, group_field="trajectory_ids", instance_field=field)


def _instance_of(row: int, extra: Any):
    named = extra.get(COLUMN) if isinstance(extra, Mapping) else None
    return instance_named(named, f"env_extras[{row}].{COLUMN}")
