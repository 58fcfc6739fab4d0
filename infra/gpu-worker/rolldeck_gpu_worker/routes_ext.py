"""Our own part of the surface: what the worker is, what it does now, and what the protocol has no words for."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncGenerator, Iterator
from typing import TypeVar

from .checkpoints import parse_path
from .errors import WorkerError, bad_input
from .hf_export import export_hf, export_peft
from .hosted_models import HostedModel
from .http_server import Request, Response, json_response
from .losses import losses
from .memory import device_memory_bytes, peak_bytes
from .prometheus import render_metrics
from .router import Router
from .service import Service

_Part = TypeVar("_Part")
_FORMATS = {"hf": export_hf, "peft": export_peft}


class ExtRoutes:
    def __init__(self, service: Service):
        self._s = service

    def add_to(self, router: Router) -> None:
        router.add("GET", "/ext/v1/info", self.info)
        router.add("GET", "/ext/v1/load", self.load)
        router.add("GET", "/ext/v1/metrics", self.metrics)
        router.add("GET", "/ext/v1/events", self.events)
        router.add("GET", "/ext/v1/models/{id}", self.model)
        router.add("GET", "/ext/v1/checkpoints/{model}/{kind}/{name}/export", self.export)
        router.add("POST", "/ext/v1/cancel", self.cancel)
        router.add("POST", "/ext/v1/zero_grad", self.zero_grad)
        router.add("POST", "/ext/v1/shutdown", self.shutdown)

    async def info(self, _: Request) -> Response:
        bases = [
            {
                "name": base.name,
                "parameters": base.parameters,
                "max_context": base.config.max_context,
                "vocab_size": base.config.vocab_size,
            }
            for base in self._s.base_models.all()
        ]
        return json_response(
            {
                "boot_id": self._s.boot_id,
                "device": str(self._s.device),
                "dtype": str(self._s.dtype).removeprefix("torch."),
                "optimizer": {"name": "adamw", "moments": str(self._s.moments).removeprefix("torch.")},
                "versions": self._s.versions(),
                "memory_bytes": device_memory_bytes(self._s.device),
                "peak_bytes": peak_bytes(self._s.device),
                "base_models": bases,
                "losses": list(losses),
                "reduction": "sum",
                "engine": "torch" if self._s.settings.vllm_url is None else "vllm",
                "instant_engine": self._s.settings.instant_engine,
            }
        )

    async def load(self, _: Request) -> Response:
        """What the engine bears, for whoever decides how much is asked of it."""
        load = self._s.engine.load()
        return json_response({"running": load.running, "waiting": load.waiting, "cache_use": round(load.cache_use, 4)})

    async def metrics(self, _: Request) -> Response:
        return Response(body=render_metrics(self._s).encode(), content_type="text/plain; version=0.0.4")

    async def events(self, _: Request) -> Response:
        stream = self._s.events.stream(self._state, self._s.stop_requested)
        return Response(content_type="text/event-stream", headers={"Cache-Control": "no-store"}, stream=stream)

    def _state(self) -> dict:
        engine = self._s.engine
        return {
            "phase": engine.phase,
            "active_sequences": engine.active_sequences,
            "waiting_sequences": engine.waiting_sequences,
            "sampled_tokens": engine.counters.sampled_tokens,
            "tokens_per_s": self._s.events.rate(engine.counters.sampled_tokens),
            "models": [
                {"model_id": m.model_id, "step": m.step, "weight_version": m.weight_version}
                for m in self._s.models.all()
            ],
        }

    async def model(self, request: Request) -> Response:
        model = self._s.models.get(request.params["id"])
        checkpoints = self._s.checkpoints.of_model(model.model_id)
        return json_response(
            {
                "model_id": model.model_id,
                "base_model": model.base.name,
                "lora_rank": model.lora.rank if model.lora is not None else 0,
                "step": model.step,
                "weight_version": model.weight_version,
                "last_seq_id": model.journal.last,
                "accumulated_datums": model.trainer.accumulated_datums if model.trainer else 0,
                "optimizer_state_bytes": model.trainer.optimiser.state_bytes if model.trainer else 0,
                "skipped_steps": model.trainer.skipped if model.trainer else 0,
                "checkpoints": [
                    {"name": c.id.name, "path": c.id.path, "step": c.state["step"], "bytes": c.bytes}
                    for c in checkpoints
                ],
            }
        )

    async def export(self, request: Request) -> Response:
        """A tar of a Hugging Face folder, or of a PEFT adapter; its sha256 is in the headers."""
        write = _FORMATS.get(request.query.get("format", "hf"))
        if write is None:
            raise bad_input(f"must be one of {', '.join(_FORMATS)}", "format")
        p = request.params
        id = parse_path(f"tinker://{p['model']}/{p['kind']}/{p['name']}")
        # What leaves the worker is what was saved.
        checkpoint = await asyncio.to_thread(self._s.checkpoints.verified, id)
        base = self._s.base_models.get(checkpoint.state["base_model"])
        tar = await asyncio.to_thread(write, checkpoint, base)
        digest = hashlib.sha256()
        async for _ in _in_thread(tar.hashed(digest)):
            # What whoever asked may interrupt.
            pass
        name = f"{checkpoint.id.model_id}-{checkpoint.id.name}.tar"
        headers = {
            "X-Content-Sha256": digest.hexdigest(),
            "ETag": f'"{digest.hexdigest()}"',
            "Content-Disposition": f'attachment; filename="{name}"',
        }
        return Response(
            content_type="application/x-tar", headers=headers, stream=_in_thread(tar.parts()), length=tar.length
        )

    async def cancel(self, request: Request) -> Response:
        """Cancels one request, or all of a model's. Training stops between micro-batches and drops its gradient."""
        body = request.json()
        if body.get("request_id") is not None:
            entry = self._s.futures.get(str(body["request_id"]))
            model = self._s.models.get(entry.model_id) if entry.model_id is not None else None
            self._s.guard(request.headers, model)
            entries = [entry]
        elif body.get("model_id") is not None:
            model = self._s.models.get(body["model_id"])
            self._s.guard(request.headers, model)
            entries = self._s.futures.pending_of(model.model_id)
        else:
            raise bad_input("name request_id or model_id", "request_id")
        pending = [entry for entry in entries if entry.cancel is not None]
        for entry in pending:
            entry.cancel()
        return json_response({"cancelled": len(pending)})

    async def zero_grad(self, request: Request) -> Response:
        """Drops a model's accumulated gradient, after the training requests queued before it."""
        model: HostedModel = self._s.models.get(request.json().get("model_id"))
        self._s.guard(request.headers, model)

        def drop() -> dict:
            trainer = model.training()
            dropped = trainer.accumulated_datums
            trainer.zero_grad()
            return {"dropped_datums": dropped, "step": trainer.step}

        return json_response(await self._s.on_engine("zero_grad", drop))

    async def shutdown(self, request: Request) -> Response:
        if self._s.stop_requested.is_set():
            raise WorkerError("busy", "the worker is shutting down", status=503, retry_after_s=5)
        self._s.guard(request.headers)
        self._s.loop.call_later(0.05, self._s.stop_requested.set)
        return json_response({"status": "shutting down"})


async def _in_thread(parts: Iterator[_Part]) -> AsyncGenerator[_Part, None]:
    """Takes each part on another thread: the disk must not hold up the loop."""
    while (part := await asyncio.to_thread(next, parts, None)) is not None:
        yield part
