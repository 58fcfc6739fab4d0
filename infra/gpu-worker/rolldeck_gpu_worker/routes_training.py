"""Training requests: ordered by seq_id, idempotent, fenced, answered through futures."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from typing import Any

from .adamw import AdamParams, check_betas
from .checkpoints import CheckpointId, check_name, parse_path
from .datums import LossRequest, parse_loss_request
from .errors import WorkerError, bad_input
from .hosted_models import HostedModel
from .http_server import Request, Response, json_response
from .lora import LoraSpec
from .model_creation import NewModel, check_optimizer, create_model, parse_number, parse_user_metadata
from .router import Router
from .service import SaveOptions, Service
from .snapshots import Snapshot
from .tinker_proto import PROTO_TYPE, decode_forward_backward

# Training requests of one model waiting for the engine before 429.
_MAX_QUEUED = 64

_ADAM_LIMITS = {
    "learning_rate": (0.0, 10.0),
    "beta1": (0.0, 0.999999),
    "beta2": (0.0, 0.9999999),
    # A weight without a gradient would be moved by 0 ÷ 0 without it, or with one that float32 rounds away.
    "eps": (1e-15, 1.0),
    "weight_decay": (0.0, 10.0),
    "grad_clip_norm": (0.0, 1e9),
}


class TrainingRoutes:
    def __init__(self, service: Service):
        self._s = service

    def add_to(self, router: Router) -> None:
        router.add("POST", "/api/v1/forward", self.forward)
        router.add("POST", "/api/v1/forward_backward", self.forward_backward)
        router.add("POST", "/api/v1/optim_step", self.optim_step)
        router.add("POST", "/api/v1/save_weights", self.save_weights)
        router.add("POST", "/api/v1/load_weights", self.load_weights)
        router.add("POST", "/api/v1/save_weights_for_sampler", self.save_weights_for_sampler)

    async def forward(self, request: Request) -> Response:
        return await self._forward(request, None)

    async def _forward(self, request: Request, body: dict | None) -> Response:
        model, body, asked = self._loss(request, "forward_input", body)
        return await self._ordered(model, body, "forward", asked.digest, lambda: model.training().forward(asked))

    async def forward_backward(self, request: Request) -> Response:
        """The binary message may ask for the forward pass only."""
        body = None
        if PROTO_TYPE in request.headers.get("content-type", ""):
            body, forward_only = decode_forward_backward(request.body)
            if forward_only:
                return await self._forward(request, body)
        model, body, asked = self._loss(request, "forward_backward_input", body)
        return await self._ordered(
            model, body, "forward_backward", asked.digest, lambda: model.training().forward_backward(asked)
        )

    def _loss(self, request: Request, key: str, body: dict | None) -> tuple[HostedModel, dict, LossRequest]:
        """@param body: of a binary message; None: the request's JSON"""
        model, body = self._open(request, body)
        config = model.base.config
        return model, body, parse_loss_request(body.get(key), config.vocab_size, config.max_context, key)

    async def optim_step(self, request: Request) -> Response:
        model, body = self._open(request)
        params = _adam_params(body.get("adam_params"))
        check_betas(params, self._s.moments)
        expected = body.get("expect_step")
        if expected is not None and (isinstance(expected, bool) or not isinstance(expected, int) or expected < 0):
            raise bad_input("must be a whole number from 0", "expect_step")

        def check() -> None:
            coming = model.step + model.queued_steps
            if expected is not None and expected != coming:
                detail = f"the model will be at step {coming}, not {expected}"
                raise WorkerError("step_mismatch", detail, "expect_step")
            model.queued_steps += 1

        def ended() -> None:
            model.queued_steps -= 1
            self._s.events.changed()

        def step() -> dict:
            stepped = model.training().optim_step(params, expected)
            # Beside the metrics: those are equal whenever the step is.
            return {**stepped, "machine": self._s.machine_metrics(model)}

        return await self._ordered(
            model,
            body,
            "optim_step",
            _digest(body),
            step,
            before=check,
            on_end=ended,
        )

    async def save_weights(self, request: Request) -> Response:
        model, body = self._open(request)
        id = CheckpointId(model.model_id, "weights", check_name(body.get("path"), "path"))
        options = _save_options(body)

        def save() -> dict:
            return {**self._s.save(model, id, with_optimiser=True, options=options), "type": "save_weights"}

        return await self._ordered(model, body, "save_weights", _digest(body), save)

    async def load_weights(self, request: Request) -> Response:
        """Into a model, or with `session_id` into a new one that is made as the checkpoint asks."""
        body = request.json()
        id = parse_path(body.get("path"))
        with_optimiser = body.get("optimizer", True)
        if not isinstance(with_optimiser, bool):
            raise bad_input("must be true or false", "optimizer")
        check_optimizer(body.get("optimizer_config"))
        if body.get("session_id") is not None:
            return self._create_from(request, body, id, with_optimiser)
        model, body = self._open(request, body)
        stored = self._s.checkpoints.get(id)
        source = self._s.base_models.get(stored.state["base_model"])
        if source.config != model.base.config:
            raise bad_input(f"the checkpoint is of {source.name}, whose shape differs", "path")
        if stored.lora != model.lora:
            raise bad_input(f"the checkpoint is of {_kind(stored.lora)}, the model trains {_kind(model.lora)}", "path")
        if model.lora is not None and source.name != model.base.name:
            raise bad_input(f"the checkpoint adapts {source.name}, the model {model.base.name}", "path")

        def load() -> dict:
            return {**self._load(model, id, with_optimiser), "type": "load_weights"}

        return await self._ordered(model, body, "load_weights", _digest(body), load)

    def _create_from(self, request: Request, body: dict, id: CheckpointId, with_optimiser: bool) -> Response:
        session = self._s.sessions.heartbeat(body.get("session_id"))
        run = self._s.guard_files(request.headers)
        stored = self._s.checkpoints.get(id)
        base = self._s.base_models.get(stored.state["base_model"])
        if body.get("base_model") not in (None, base.name):
            raise bad_input(f"the checkpoint is of {base.name}", "base_model")
        metadata = parse_user_metadata(body.get("user_metadata"))
        source = f"{id.path} {with_optimiser}"
        seed = stored.state["seed"]
        asked = NewModel(session.session_id, parse_number(body), base, stored.lora, seed, metadata, run, source)
        load = lambda model: self._load(model, id, with_optimiser)  # noqa: E731
        return json_response(create_model(self._s, asked, "load_weights", load))

    def _load(self, model: HostedModel, id: CheckpointId, with_optimiser: bool) -> dict:
        """Engine thread: copies a checkpoint in."""
        trainer = model.training()
        if trainer.accumulated_datums:
            raise WorkerError("conflict", "a gradient is accumulated: load before training, or zero it", "path")
        state = self._s.checkpoints.load(id, trainer.weights, trainer.optimiser if with_optimiser else None)
        if not with_optimiser:
            trainer.optimiser.reset()
        trainer.reset(state["step"] if with_optimiser else 0)
        return {"path": id.path, "model_id": model.model_id, "step": trainer.step}

    async def save_weights_for_sampler(self, request: Request) -> Response:
        """With `path` a stored sampler checkpoint, else an ephemeral sampling session of the newest weights."""
        model, body = self._open(request)
        if body.get("kind", "snapshot") != "snapshot":
            raise bad_input("only snapshot: weights that serve do not change", "kind")
        start: Callable[[], dict]
        if body.get("path") is not None:
            id = CheckpointId(model.model_id, "sampler_weights", check_name(body["path"], "path"))
            options = _save_options(body)

            def start() -> dict:
                saved = self._s.save(model, id, with_optimiser=False, options=options)
                return {**saved, "type": "save_weights_for_sampler"}
        else:

            def start() -> dict:
                return self._commit(model)

        return await self._ordered(model, body, "save_weights_for_sampler", _digest(body), start)

    def _commit(self, model: HostedModel) -> dict:
        """Engine thread: the newest weights serve from here on."""
        snapshot = Snapshot(model.model_id, model.training().step, model.training().weights.snapshot())
        self._s.engine.commit(snapshot)
        session_id, retired = self._s.models.serve(model, snapshot)
        model.weight_version = snapshot.version
        for old in retired:
            self._s.engine.drop_snapshot(old)
        return {
            "path": None,
            "sampling_session_id": session_id,
            "weight_version": snapshot.version,
            "type": "save_weights_for_sampler",
        }

    def _open(self, request: Request, body: dict | None = None) -> tuple[HostedModel, dict]:
        body = request.json() if body is None else body
        model = self._s.models.get(body.get("model_id"))
        self._s.guard(request.headers, model)
        return model, body

    async def _ordered(
        self,
        model: HostedModel,
        body: dict,
        kind: str,
        digest: str,
        start: Callable[[], Any],
        before: Callable[[], None] | None = None,
        on_end: Callable[[], None] | None = None,
    ) -> Response:
        """Takes the request's place in the model's order and queues its work; a retry gets the first one's id."""
        seq_id = body.get("seq_id")
        if seq_id is None:
            if kind != "save_weights_for_sampler":
                raise bad_input("is needed: a whole number, contiguous from 1", "seq_id")
        elif isinstance(seq_id, bool) or not isinstance(seq_id, int) or seq_id < 1:
            raise bad_input("must be a whole number from 1", "seq_id")
        else:
            await model.journal.wait_turn(seq_id)
            # While it waited the model may have been unloaded or taken over.
            self._s.models.get(model.model_id)
            known = model.journal.find(seq_id, kind, digest)
            if known is not None and not self._s.futures.has(known.request_id):
                raise WorkerError("conflict", f"the result of seq_id {seq_id} is no longer kept", "seq_id")
            if known is not None:
                return json_response({"request_id": known.request_id, "model_id": model.model_id})
        if len(self._s.futures.pending_of(model.model_id)) >= _MAX_QUEUED and kind != "optim_step":
            raise WorkerError("busy", f"{_MAX_QUEUED} requests of this model are waiting", retry_after_s=1)
        if before is not None:
            before()
        entry = self._s.futures.create(model.model_id)
        if seq_id is not None:
            model.journal.record(seq_id, kind, digest, entry.request_id)
        self._s.queue(entry, kind, start, on_end)
        return json_response({"request_id": entry.request_id, "model_id": model.model_id})


def _kind(lora: LoraSpec | None) -> str:
    if lora is None:
        return "all weights"
    parts = [name for name in ("attn", "mlp", "unembed") if getattr(lora, f"train_{name}")]
    return f"an adapter of rank {lora.rank} ({', '.join(parts)})"


def _save_options(body: dict) -> SaveOptions:
    overwrite, ttl_s = body.get("overwrite", False), body.get("ttl_seconds")
    if not isinstance(overwrite, bool):
        raise bad_input("must be true or false", "overwrite")
    if ttl_s is not None and (isinstance(ttl_s, bool) or not isinstance(ttl_s, int) or not 0 < ttl_s < 2**40):
        raise bad_input("must be a whole number of seconds above 0", "ttl_seconds")
    return SaveOptions(overwrite, ttl_s, parse_user_metadata(body.get("user_metadata")))


def _digest(body: dict) -> str:
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()


def _adam_params(raw: Any) -> AdamParams:
    raw = {} if raw is None else raw
    if not isinstance(raw, dict):
        raise bad_input("must be an object", "adam_params")
    for key, value in raw.items():
        field = f"adam_params.{key}"
        if key not in _ADAM_LIMITS:
            raise bad_input(f"unknown key; known: {', '.join(_ADAM_LIMITS)}", field)
        low, high = _ADAM_LIMITS[key]
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if not number or not low <= value <= high:
            raise bad_input(f"must be a number from {low} to {high}", field)
    return AdamParams(**{key: float(value) for key, value in raw.items()})
