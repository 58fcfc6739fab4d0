"""Models under training and the sampling sessions that serve their snapshots. Lives on the event loop's thread, except
`Trainer`, which only the engine thread touches."""

from __future__ import annotations

import hashlib
import re
import time
from collections import OrderedDict
from dataclasses import dataclass, field

from .base_models import BaseModel
from .errors import WorkerError
from .journal import StepJournal
from .lora import LoraSpec
from .phases import StepRates
from .snapshots import Snapshot
from .trainer import Trainer

# How the official client names a model whose creation it asked for with a load, before any answer.
_CLIENT_ID = re.compile(r"^([A-Za-z0-9_-]+):train:([0-9]+)$")
# Ephemeral sampling sessions kept per model; an evaluation may still sample the version before the newest ones.
_KEPT_SNAPSHOTS = 4
# Snapshots of base models and stored checkpoints kept for sampling.
_KEPT_STORED = 4


def model_id_of(session_id: str, number: int) -> str:
    return f"{session_id}-m{number}"


def canonical_model_id(given: object) -> object:
    """The id that this worker gave, also where the client composed `<session>:train:<number>` itself."""
    named = _CLIENT_ID.match(given) if isinstance(given, str) else None
    return given if named is None else model_id_of(named[1], int(named[2]))


@dataclass(eq=False)
class HostedModel:
    model_id: str
    base: BaseModel
    seed: int
    session_id: str
    # The fenced run that owns it; None for clients without fencing.
    run: str | None
    journal: StepJournal
    # None: all weights are trained.
    lora: LoraSpec | None = None
    user_metadata: dict[str, str] | None = None
    created_at: float = field(default_factory=time.time)
    used_at: float = field(default_factory=time.time)
    # Set by the engine once the weights exist.
    trainer: Trainer | None = None
    # optim_steps queued and not yet done: what expect_step must count with.
    queued_steps: int = 0
    # Step of the newest checkpoint, to not save the same state again on shutdown.
    saved_step: int | None = None
    weight_version: int = 0
    rates: StepRates = field(default_factory=StepRates)

    @property
    def step(self) -> int:
        return self.trainer.step if self.trainer is not None else 0

    def training(self) -> Trainer:
        """Engine thread. @raises WorkerError unknown_model when the model could not be made"""
        if self.trainer is None:
            raise WorkerError("unknown_model", f"model {self.model_id} was not created", "model_id")
        return self.trainer

    @property
    def dirty(self) -> bool:
        """Trained since its last checkpoint."""
        return self.step > 0 and self.saved_step != self.step


@dataclass
class SamplingSession:
    session_id: str
    snapshot: Snapshot
    base: BaseModel
    model: HostedModel | None


class HostedModels:
    def __init__(self) -> None:
        self._models: dict[str, HostedModel] = {}
        self._sampling: dict[str, SamplingSession] = {}
        self._served: dict[str, list[str]] = {}
        self._stored: OrderedDict[str, SamplingSession] = OrderedDict()
        self._created: dict[tuple[str, int], tuple[str, str, str]] = {}

    def creation(self, key: tuple[str, int], payload: object) -> tuple[str, str] | None:
        """(model id, request id) of an earlier create_model with this session and number.

        @raises WorkerError conflict when its payload was another one."""
        known = self._created.get(key)
        if known is None:
            return None
        if known[2] != repr(payload):
            raise WorkerError("conflict", f"model_seq_id {key[1]} was used for another model", "model_seq_id")
        return known[0], known[1]

    def add(self, model: HostedModel, key: tuple[str, int], payload: object, request_id: str) -> None:
        self._models[model.model_id] = model
        self._created[key] = (model.model_id, request_id, repr(payload))

    def get(self, model_id: object) -> HostedModel:
        model_id = canonical_model_id(model_id)
        model = self._models.get(model_id) if isinstance(model_id, str) else None
        if model is None:
            raise WorkerError("unknown_model", f"no model {str(model_id)[:100]!r} in this process", "model_id")
        model.used_at = time.time()
        return model

    def all(self) -> list[HostedModel]:
        return list(self._models.values())

    def of_session(self, session_id: str) -> list[HostedModel]:
        return [model for model in self._models.values() if model.session_id == session_id]

    def remove(self, model: HostedModel) -> list[Snapshot]:
        """Forgets a model and its sampling sessions; returns the snapshots that are gone."""
        self._models.pop(model.model_id, None)
        gone = []
        for session_id in self._served.pop(model.model_id, []):
            gone.append(self._sampling.pop(session_id).snapshot)
        return gone

    def serve(self, model: HostedModel, snapshot: Snapshot) -> tuple[str, list[Snapshot]]:
        """Opens an ephemeral sampling session; returns its id and the snapshots it retires."""
        session_id = f"{model.model_id}-sampler-{snapshot.uid}"
        self._sampling[session_id] = SamplingSession(session_id, snapshot, model.base, model)
        served = self._served.setdefault(model.model_id, [])
        served.append(session_id)
        retired = []
        while len(served) > _KEPT_SNAPSHOTS:
            retired.append(self._sampling.pop(served.pop(0)).snapshot)
        return session_id, retired

    def served(self, model: HostedModel) -> list[str]:
        """Ids of a model's ephemeral sampling sessions, oldest first."""
        return list(self._served.get(model.model_id, []))

    def sampling(self, session_id: object) -> SamplingSession:
        session = self._sampling.get(session_id) if isinstance(session_id, str) else None
        if session is None:
            known = str(session_id)[:100]
            raise WorkerError("unknown_model", f"no sampling session {known!r}: it ended", "sampling_session_id")
        if session.model is not None:
            session.model.used_at = time.time()
        return session

    def stored(self, target: str) -> SamplingSession | None:
        """The session of a base model or stored checkpoint, when it is loaded."""
        session = self._stored.get(target)
        if session is not None:
            self._stored.move_to_end(target)
        return session

    def keep_stored(self, target: str, snapshot: Snapshot, base: BaseModel) -> tuple[SamplingSession, list[Snapshot]]:
        digest = hashlib.sha256(target.encode()).hexdigest()[:16]
        session = SamplingSession(f"sampling-{digest}", snapshot, base, None)
        self._stored[target] = session
        self._sampling[session.session_id] = session
        retired = []
        while len(self._stored) > _KEPT_STORED:
            _, old = self._stored.popitem(last=False)
            self._sampling.pop(old.session_id, None)
            retired.append(old.snapshot)
        return session, retired

    def forget_stored(self, target: str) -> list[Snapshot]:
        """A stored checkpoint was deleted or overwritten; returns the snapshot that is gone."""
        session = self._stored.pop(target, None)
        if session is None:
            return []
        self._sampling.pop(session.session_id, None)
        return [session.snapshot]
