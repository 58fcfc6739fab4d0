"""What a trainer asks for at one step: instances of the run's task sets, each sampled equally often. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .errors import InputBatchError

COLUMN = "rolldeck"
"""Column of a trainer's data set that names a row's instance: the task writes the prompt, the trainer never sees it."""


@dataclass(frozen=True)
class Instance:
    task_set: int
    index: int


Place = tuple[int, int]
"""(Place of the instance in the request, sample)."""


@dataclass(frozen=True)
class AskedBatch:
    """Rows in the trainer's order: row `n` is sample `places[n][1]` of `instances[places[n][0]]`."""

    step: int
    instances: tuple[Instance, ...]
    samples: int
    places: tuple[Place, ...]

    def request(self, policy_version: int, deadline_ms: int | None) -> dict[str, Any]:
        """Body of `POST /runs/{runId}/batches`."""
        return {
            "trainerStep": self.step,
            "instances": [{"taskSet": instance.task_set, "index": instance.index} for instance in self.instances],
            "samples": self.samples,
            "policyVersion": policy_version,
            "deadlineMs": deadline_ms,
        }


@dataclass(frozen=True)
class GroupedRow:
    """One row of the trainer's batch. `sample` counts from 0 within its group."""

    group: str
    sample: int
    instance: Instance


def ask_for(step: int, rows: Sequence[GroupedRow], *, group_field: str, instance_field: str) -> AskedBatch:
    """The batch of these rows.

    @param group_field, instance_field: the trainer's own names, for messages; `{}` stands for a row's number
    @raises InputBatchError"""
    groups: dict[str, dict[int, int]] = {}
    instance_of: dict[str, Instance] = {}
    for number, row in enumerate(rows):
        if instance_of.setdefault(row.group, row.instance) != row.instance:
            raise InputBatchError(f"{instance_field.format(number)}: differs within the group {row.group}")
        groups.setdefault(row.group, {})[row.sample] = number
    samples = len(next(iter(groups.values()), {}))
    for group, found in groups.items():
        if sorted(found) != list(range(samples)):
            raise InputBatchError(f"{group_field}: group {group} has samples {sorted(found)}, not 0 to {samples - 1}")
    if sum(map(len, groups.values())) != len(rows):
        raise InputBatchError(f"{group_field}: a sample is there twice")
    if len(set(instance_of.values())) != len(groups):
        raise InputBatchError(
            f"{instance_field.format('…')}: two groups of a batch name one instance; take it out of the data set once"
        )
    order = {group: place for place, group in enumerate(groups)}
    places = tuple((order[row.group], row.sample) for row in rows)
    return AskedBatch(step, tuple(instance_of[group] for group in groups), samples, places)


def instance_named(named: Any, where: str) -> Instance:
    """Reads the column `rolldeck` of a row. @raises InputBatchError"""
    if not isinstance(named, Mapping):
        raise InputBatchError(f"{where}: is missing; dataset_row makes the data set's rows")
    return Instance(_whole(named.get("task_set", 0), f"{where}.task_set"), _whole(named.get("index"), f"{where}.index"))


def _whole(value: Any, where: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise InputBatchError(f"{where}: is {value!r}, not a whole number from 0")
    return value
