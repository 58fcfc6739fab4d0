"""Finished rollouts, as the API gives them, read for a trainer. Pure.

Token ids and logprobs are those that were sampled; nothing is cut or tokenised again. The response of a row begins at
its first trained token. A rollout that ended without a reward (a lost sandbox, a model server that failed) has no
number that a trainer could take for one: its whole group is left out, since any number in its place would move the
baseline of its siblings."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .batch import AskedBatch, Place
from .errors import BatchError

Finished = Mapping[Place, Mapping[str, Any]]
"""By (place of the instance, sample); what is missing counts as unscored."""


@dataclass(frozen=True)
class TrainedRow:
    """`mask` and `logprobs` are as long as `response`; a logprob is 0.0 only where the mask is 0."""

    prompt: list[int]
    response: list[int]
    mask: list[int]
    logprobs: list[float]


@dataclass(frozen=True)
class LeftOut:
    """Rollouts of a batch without a reward, and the places of the instances whose groups are left out for them."""

    unscored: tuple[Place, ...]
    instances: frozenset[int]


def left_out(asked: AskedBatch, finished: Finished) -> LeftOut:
    """@raises BatchError for a reward that is no number"""
    unscored = tuple(place for place in asked.places if reward_of(finished.get(place)) is None)
    return LeftOut(unscored, frozenset(instance for instance, _ in unscored))


def reward_of(rollout: Mapping[str, Any] | None) -> float | None:
    """@raises BatchError"""
    reward = rollout["reward"] if rollout else None
    if reward is not None and not math.isfinite(reward):
        raise BatchError(f"rollout {rollout['rolloutId']}: reward {reward} is not finite")
    return None if reward is None else float(reward)


def rows_of(rollout: Mapping[str, Any] | None, pad_token_id: int) -> list[TrainedRow]:
    """Rows with at least one trained token; where there is none, the last of the others, or one of padding alone.

    @raises BatchError for a row that can not be trained as it is"""
    long_enough = [row for row in rollout["rows"] if len(row["tokens"]) > 1] if rollout else []
    trained = [row for row in long_enough if 1 in row["mask"]]
    found = [_row(rollout["rolloutId"], row) for row in trained or long_enough[-1:]]
    return found or [TrainedRow([pad_token_id], [pad_token_id], [0], [0.0])]


def _row(rollout_id: str, row: Mapping[str, Any]) -> TrainedRow:
    tokens, mask, logprobs = row["tokens"], row["mask"], row["logprobs"]
    if not len(tokens) == len(mask) == len(logprobs):
        raise BatchError(f"rollout {rollout_id}: {len(tokens)} tokens, {len(mask)} masks, {len(logprobs)} logprobs")
    start = mask.index(1) if 1 in mask else len(tokens) - 1
    if start == 0:
        raise BatchError(f"rollout {rollout_id}: a row's first token is trained, so it has no prompt")
    return TrainedRow(tokens[:start], tokens[start:], mask[start:], _known(rollout_id, mask[start:], logprobs[start:]))


def _known(rollout_id: str, mask: Sequence[int], logprobs: Sequence[float | None]) -> list[float]:
    """0.0 stands where nothing was sampled, and only where the mask is 0."""
    known = []
    for kept, logprob in zip(mask, logprobs):
        if logprob is not None and math.isfinite(logprob):
            known.append(float(logprob))
        elif kept:
            raise BatchError(f"rollout {rollout_id}: a trained token has no logprob; use a server that tells them")
        else:
            known.append(0.0)
    return known


def batch_metrics(asked: AskedBatch, finished: Finished, left: LeftOut) -> dict[str, float]:
    """How many rollouts ended how, how many have no reward, how many groups are left out for them."""
    counts = {f"rolldeck/ending/{ending}": float(count) for ending, count in _endings(asked, finished).items()}
    unscored, groups = float(len(left.unscored)), float(len(left.instances))
    return {**counts, "rolldeck/unscored": unscored, "rolldeck/groups_left_out": groups}


def nothing_to_train(asked: AskedBatch, finished: Finished, left: LeftOut) -> BatchError:
    """The error of a batch without any trained token: how its rollouts ended."""
    ended = ", ".join(f"{count} {ending}" for ending, count in _endings(asked, finished).most_common())
    missing = f"{len(left.unscored)} of {len(asked.places)} rollouts have no reward ({ended})"
    return BatchError(f"step {asked.step}: no token can be trained; {missing}")


def _endings(asked: AskedBatch, finished: Finished) -> Counter[str]:
    return Counter(finished[place]["ending"] if place in finished else "missing" for place in asked.places)
