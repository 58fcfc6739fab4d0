"""Stored rows as the rollouts of one batch, each an instance of its own, as a bridge takes them from the API."""

from __future__ import annotations

from typing import Any

from rolldeck_driven.batch import AskedBatch, Instance


def as_batch(rows: list[dict[str, Any]]) -> tuple[AskedBatch, dict[tuple[int, int], dict[str, Any]]]:
    """@param rows: `tokens`, `mask`, `logprobs` of a rollout each
    @returns the request, and the finished rollouts by place; their reward is of no interest"""
    places = tuple((place, 0) for place in range(len(rows)))
    asked = AskedBatch(1, tuple(Instance(0, place) for place, _ in places), 1, places)
    finished = {
        (place, 0): {"rolloutId": str(place), "ending": "answer", "reward": 0.0, "rows": [row]}
        for place, row in enumerate(rows)
    }
    return asked, finished
