"""Weights as the sampler sees them. A snapshot never changes; `uid` is unique in the process, so whatever is keyed by
it (batches, cached prefixes) can not outlive its weights by accident even when a version number comes again."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field

from .policy_weights import PolicyWeights

_uids = itertools.count(1)


@dataclass(frozen=True)
class Snapshot:
    """`version` is the model's step when the copy was made."""

    owner: str
    version: int
    weights: PolicyWeights
    uid: int = field(default_factory=lambda: next(_uids))
