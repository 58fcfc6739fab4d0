"""VeRL's batch for generation as a request of Rolldeck's. A row of VeRL's data set names one instance of a run's task
set, in its column `rolldeck`: VeRL never sees its prompt, which the task writes."""

from __future__ import annotations

from collections import Counter
from typing import Any

from rolldeck_driven.batch import COLUMN, AskedBatch, GroupedRow, ask_for, instance_named
from rolldeck_driven.errors import InputBatchError


def dataset_row(index: int, task_set: int = 0) -> dict[str, Any]:
    """One row for VeRL's `RLHFDataset` (Parquet or JSON Lines). Prompt and ground truth only fill their columns."""
    return {
        "data_source": "rolldeck",
        "prompt": [{"role": "user", "content": f"instance {index} of task set {task_set}"}],
        "reward_model": {"style": "rule", "ground_truth": ""},
        "extra_info": {"index": index},
        COLUMN: {"task_set": task_set, "index": index},
    }


def asked_batch(prompts: Any) -> AskedBatch:
    """Groups by VeRL's uid, which it makes anew after a restart; samples are numbered in the order of the rows.

    @param prompts: DataProto as `RayPPOTrainer` gives it to its agent-loop manager
    @raises InputBatchError"""
    meta, columns = prompts.meta_info, prompts.non_tensor_batch
    if meta.get("validate"):
        raise InputBatchError(
            "meta_info.validate: a driven run has training instances only; set trainer.test_freq=-1 and "
            "trainer.val_before_train=false, and launch an evaluation in Rolldeck"
        )
    step = meta.get("global_steps")
    if not isinstance(step, int) or step < 1:
        raise InputBatchError(f"meta_info.global_steps: is {step!r}; training steps count from 1")
    if "__do_sample__" in columns:
        raise InputBatchError(
            "__do_sample__: a driven run has no greedy baselines; choose another adv_estimator than remax"
        )
    for name in ("uid", COLUMN):
        if name not in columns:
            raise InputBatchError(
                f"{name}: is missing; rolldeck_verl.asked_batch.dataset_row makes the data set's rows"
            )
    seen: Counter[str] = Counter()
    rows = []
    for number, (uid, named) in enumerate(zip(columns["uid"], columns[COLUMN])):
        rows.append(GroupedRow(str(uid), seen[str(uid)], instance_named(named, f"{COLUMN}[{number}]")))
        seen[str(uid)] += 1
    return ask_for(step, rows, group_field="uid", instance_field=f"{COLUMN}[{{}}]")
