"""Everything one worker process holds, wired together: the only place that constructs adapters.

Runs on the event loop's thread; hands work to the engine and takes results back through futures."""

from __future__ import annotations

import asyncio
import logging
import platform
import secrets
import time
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any

import torch

from . import __version__
from .base_models import BaseModels
from .batch import BatchLimits
from .checkpoints import CheckpointId, CheckpointStore, check_name
from .engine import Engine, EngineTask
from .errors import WorkerError, bad_input
from .fences import FenceTable
from .futures import FutureEntry, FutureTable
from .gpu_reading import GpuReader, device_name, gpu_uuid
from .hosted_models import HostedModel, HostedModels
from .instant_engine import InstantEngine
from .live_events import LiveEvents
from .phases import peak_flops
from .sessions import Session, Sessions
from .settings import Settings
from .vllm_engine import VllmEngine, VllmServer

log = logging.getLogger(__name__)

_FUTURE_BYTES = 256 << 20
# Checkpoints made by the worker itself (lease expiry, shutdown), kept per model.
_KEPT_OWN = 2


@dataclass(frozen=True)
class SaveOptions:
    """What a client may say about a checkpoint. `ttl_s`: seconds until it is gone; None: it stays."""

    overwrite: bool = False
    ttl_s: int | None = None
    user_metadata: dict[str, str] | None = None


class Service:
    def __init__(self, settings: Settings):
        self.settings = settings
        self.boot_id = secrets.token_hex(8)
        self.started_at = time.time()
        self.device = device_named(settings.device)
        self.moments = getattr(torch, settings.optimizer_moments)
        self.dtype = dtype_named(settings.dtype, self.device)
        self.base_models = BaseModels(settings.model_roots, settings.models, self.dtype)
        others = [folder / "checkpoints" for folder in settings.also_read]
        self.checkpoints = CheckpointStore(settings.data_dir / "checkpoints", owned=not settings.sampler, others=others)
        self.fences = FenceTable(settings.data_dir / "fences.json")
        self.sessions = Sessions(settings.session_lease_s)
        self.models = HostedModels()
        self.futures = FutureTable(self.boot_id, _FUTURE_BYTES)
        self.engine = _engine(settings, self.device)
        self.events = LiveEvents()
        self.gpu = GpuReader(gpu_uuid(self.device))
        self.peak_flops = peak_flops(device_name(self.device), self.dtype)
        self.samples_in_progress = 0
        self.stop_requested = asyncio.Event()
        self.loop = asyncio.get_running_loop()

    def versions(self) -> dict[str, str]:
        return {"worker": __version__, "torch": torch.__version__, "python": platform.python_version()}

    def guard(self, headers: dict[str, str], model: HostedModel | None = None) -> str | None:
        """Fencing of a mutating call; returns the run that calls. @raises WorkerError fenced"""
        if self.stop_requested.is_set():
            raise WorkerError("busy", "the worker is shutting down", status=503, retry_after_s=5)
        run = self.fences.check(headers)
        if model is not None and model.run is not None and run != model.run:
            raise WorkerError("fenced", f"model {model.model_id} belongs to another run", "X-Rolldeck-Run")
        return run

    def guard_files(self, headers: dict[str, str]) -> str | None:
        """As `guard`, of what makes models or changes checkpoints. @raises WorkerError bad_input where another worker does that"""
        if self.settings.sampler:
            raise bad_input("this worker only samples: ask the one that saves its checkpoints")
        return self.guard(headers)

    def queue(
        self, entry: FutureEntry, name: str, start: Callable[[], Any], on_end: Callable[[], None] | None = None
    ) -> None:
        """Queues engine work for a future. `start` gives a result or a generator that returns one; `on_end` runs on the
        loop, whatever came out."""

        def ended(result: Any, error: WorkerError | None) -> None:
            if on_end is not None:
                self.loop.call_soon_threadsafe(on_end)
            self.futures.settle_from_engine(entry, result, error)

        task = EngineTask(name, lambda: _as_generator(start), ended)

        def cancel() -> None:
            task.cancelled = True

        entry.cancel = cancel
        self.engine.run(task)

    async def on_engine(self, name: str, start: Callable[[], Any]) -> Any:
        """Runs engine work and waits for it."""
        done: asyncio.Future = self.loop.create_future()

        def settle(result: Any, error: WorkerError | None) -> None:
            if not done.done():
                done.set_exception(error) if error is not None else done.set_result(result)

        def ended(result: Any, error: WorkerError | None) -> None:
            self.loop.call_soon_threadsafe(settle, result, error)

        self.engine.run(EngineTask(name, lambda: _as_generator(start), ended))
        return await done

    def save(
        self, model: HostedModel, id: CheckpointId, with_optimiser: bool, options: SaveOptions = SaveOptions()
    ) -> dict:
        """Engine thread (or after it ended): writes a checkpoint of a model."""
        trainer = model.training()
        state = {
            "model_id": model.model_id,
            "base_model": model.base.name,
            "seed": model.seed,
            "lora": model.lora.as_state() if model.lora is not None else None,
            "run_metadata": model.user_metadata,
            "user_metadata": options.user_metadata,
            "expires_at": None if options.ttl_s is None else time.time() + options.ttl_s,
            "step": trainer.step,
            "last_seq_id": model.journal.last,
            "journal_tail": model.journal.tail(),
        }
        optimiser = trainer.optimiser if with_optimiser else None
        checkpoint = self.checkpoints.save(id, trainer.weights, optimiser, state, options.overwrite)
        if with_optimiser:
            model.saved_step = trainer.step
        if options.overwrite:
            self.loop.call_soon_threadsafe(self.forget_stored, id)
        return {"path": id.path, "step": checkpoint.state["step"], "bytes": checkpoint.bytes}

    def machine_metrics(self, model: HostedModel) -> dict[str, float]:
        """Engine thread: what the machine did since the model's last optimizer step. What is not known is left out."""
        trainer, counters = model.training(), self.engine.counters
        phases = {"prefill": counters.prefill, "decode": counters.decode}
        phases |= {"forward": trainer.forwarded, "update": trainer.updated}
        gpu = self.gpu.read()
        told = {"gpu_memory_bytes": gpu.memory_used_bytes, "gpu_utilisation": gpu.utilisation}
        rates = model.rates.since_last(phases, self.peak_flops)
        return rates | {name: float(value) for name, value in told.items() if value is not None}

    def unload(self, model: HostedModel) -> None:
        for snapshot in self.models.remove(model):
            self.engine.drop_snapshot(snapshot)

    def forget_stored(self, id: CheckpointId) -> None:
        """A checkpoint's name no longer stands for what sampling loaded under it."""
        for snapshot in self.models.forget_stored(id.path):
            self.engine.drop_snapshot(snapshot)

    def save_own(self, model: HostedModel, reason: str) -> None:
        """A checkpoint of the worker's own making; the oldest of its kind go. Engine thread, or after it ended."""
        name = check_name(f"{reason}-{model.step}-{self.boot_id}", "name")
        self.save(model, CheckpointId(model.model_id, "weights", name), with_optimiser=True)
        own = [c for c in self.checkpoints.of_model(model.model_id) if c.id.name.startswith(f"{reason}-")]
        for checkpoint in own[:-_KEPT_OWN]:
            self.checkpoints.delete(checkpoint.id)

    async def expire_sessions(self) -> None:
        """Checkpoints and unloads what belongs to sessions that fell silent."""
        used: dict[str, float] = {}
        for model in self.models.all():
            used[model.session_id] = max(used.get(model.session_id, 0.0), model.used_at)
        for session in self.sessions.expired(used):
            log.info("session %s fell silent: its models are saved and unloaded", session.session_id)
            await self.close_session(session, "expired")

    async def close_session(self, session: Session, reason: str) -> None:
        """Checkpoints what was trained and not saved, and unloads the session's models."""
        self.sessions.close(session)
        for model in self.models.of_session(session.session_id):
            if model.dirty:
                await self.on_engine("save", lambda model=model: self.save_own(model, reason))
            self.unload(model)

    async def watch_sessions(self) -> None:
        period = min(10.0, self.sessions.lease_s / 4)
        while True:
            await asyncio.sleep(period)
            try:
                await self.expire_sessions()
                # On the engine thread, as saves are: a checkpoint in the making must not be taken for an expired one.
                if not self.settings.sampler:
                    await self.on_engine("remove expired", self.checkpoints.remove_expired)
            except Exception:
                # The next round tries again: sessions must not outlive their leases because one could not be closed.
                log.exception("expiring sessions failed")

    def shut_down(self) -> None:
        """Ends the engine after its current slice and saves what was trained since its last checkpoint."""
        self.engine.stop(timeout_s=60)
        for model in self.models.all():
            if model.dirty:
                self.save_own(model, "shutdown")


def _engine(settings: Settings, device: torch.device) -> Engine:
    limits = BatchLimits(rows=settings.max_rows, prefill_tokens=8192)
    if settings.vllm_url is not None:
        server = VllmServer(settings.vllm_url, settings.vllm_key)
        return VllmEngine(device, limits, settings.prefix_cache_bytes, server)
    make = InstantEngine if settings.instant_engine else Engine
    return make(device, limits, settings.prefix_cache_bytes)


def _as_generator(start: Callable[[], Any]) -> Generator[None, None, Any]:
    result = start()
    if isinstance(result, Generator):
        result = yield from result
    return result


def dtype_named(name: str, device: torch.device) -> torch.dtype:
    """`auto`: bfloat16 where a GPU computes in it, not where it only emulates it."""
    if name == "auto":
        name = "bfloat16" if device.type == "cuda" and torch.cuda.is_bf16_supported(False) else "float32"
    return getattr(torch, name)


def device_named(name: str) -> torch.device:
    """`auto`: a GPU where there is one."""
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    return torch.device(name)
