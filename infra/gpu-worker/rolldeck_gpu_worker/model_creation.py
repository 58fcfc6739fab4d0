"""Makes a model under training: fresh, or from a checkpoint in one request. Lives on the event loop's thread."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .base_models import BaseModel
from .errors import bad_input
from .hosted_models import HostedModel, model_id_of
from .journal import StepJournal
from .lora import LoraSpec
from .service import Service
from .trainer import Trainer


@dataclass(frozen=True)
class NewModel:
    """What a client asks for. `seed` None: an adapter starts from a random one, fresh weights from 0."""

    session_id: str
    number: int
    base: BaseModel
    lora: LoraSpec | None
    seed: int | None
    user_metadata: dict[str, str] | None
    # The fenced run that asks.
    run: str | None
    # The checkpoint that it starts from, as far as requests that are the same must name the same.
    source: str = ""


def parse_number(body: dict) -> int:
    number = body.get("model_seq_id", 0)
    if isinstance(number, bool) or not isinstance(number, int) or number < 0:
        raise bad_input("must be a whole number from 0", "model_seq_id")
    return number


def parse_user_metadata(raw: Any) -> dict[str, str] | None:
    """Names and texts that a client attaches to what it makes; at most 64 of at most 4,096 characters."""
    if raw is None:
        return None
    if not isinstance(raw, dict) or len(raw) > 64:
        raise bad_input("must be an object with at most 64 entries", "user_metadata")
    for key, value in raw.items():
        if not isinstance(value, str) or len(key) + len(value) > 4096:
            raise bad_input("must be a text of at most 4,096 characters", f"user_metadata.{key[:100]}")
    return raw


def check_optimizer(raw: Any) -> None:
    """`optimizer_config`: AdamW is the only optimizer. @raises WorkerError bad_input"""
    if raw is not None and (not isinstance(raw, dict) or raw.get("type", "adamw") != "adamw"):
        raise bad_input("only adamw is supported", "optimizer_config.type")


def create_model(
    service: Service, asked: NewModel, kind: str, load: Callable[[HostedModel], dict] | None = None
) -> dict[str, str]:
    """Queues the making of a model; a retry gets the first one's ids.

    @param load: copies a checkpoint in, on the engine thread; what it returns is the future's result"""
    key = (asked.session_id, asked.number)
    payload = (asked.base.name, asked.lora, asked.seed, asked.run, asked.source)
    known = service.models.creation(key, payload)
    if known is not None:
        return {"model_id": known[0], "request_id": known[1]}
    model_id = model_id_of(asked.session_id, asked.number)
    seed = asked.seed if asked.seed is not None else 0 if asked.lora is None else secrets.randbits(32)
    journal = StepJournal(service.settings.gap_wait_s)
    model = HostedModel(
        model_id, asked.base, seed, asked.session_id, asked.run, journal, asked.lora, asked.user_metadata
    )
    entry = service.futures.create(model_id)
    service.models.add(model, key, payload, entry.request_id)

    def create() -> dict:
        weights = asked.base.make_for(asked.lora, seed, service.device, with_grad=True)
        weights.recompute = service.settings.gradient_checkpointing
        trainer = Trainer(weights, service.settings.micro_batch_tokens, service.moments)
        result = {"model_id": model_id, "type": kind}
        if load is not None:
            model.trainer = trainer
            try:
                result |= load(model)
            except BaseException:
                model.trainer = None
                raise
        model.trainer = trainer
        return result

    def ended() -> None:
        if model.trainer is None:
            service.unload(model)

    service.queue(entry, kind, create, ended)
    return {"model_id": model_id, "request_id": entry.request_id}
