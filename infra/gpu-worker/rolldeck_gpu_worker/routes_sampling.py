"""Sampling: sampling sessions, asample (two calls) and sample (one call)."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections import OrderedDict
from typing import Any

from .checkpoints import parse_path
from .engine import SampleJob
from .errors import WorkerError, bad_input
from .hosted_models import SamplingSession
from .http_server import Request, Response, json_response
from .router import Router
from .sample_requests import SampleRequest, parse_sample_request
from .service import Service
from .snapshots import Snapshot

_KEPT_KEYS = 50_000
# Seed of a base model's fresh weights when it is sampled without having been trained.
_BASE_SEED = 0


class SamplingRoutes:
    def __init__(self, service: Service):
        self._s = service
        self._asked: OrderedDict[tuple[str, int], tuple[str, str]] = OrderedDict()
        self._opened: dict[tuple[str, int], str] = {}

    def add_to(self, router: Router) -> None:
        router.add("POST", "/api/v1/create_sampling_session", self.create_sampling_session)
        router.add("POST", "/api/v1/asample", self.asample)
        router.add("POST", "/ext/v1/sample", self.sample)

    async def create_sampling_session(self, request: Request) -> Response:
        body = request.json()
        self._s.sessions.heartbeat(body.get("session_id"))
        number = body.get("sampling_session_seq_id", 0)
        if isinstance(number, bool) or not isinstance(number, int):
            raise bad_input("must be a whole number", "sampling_session_seq_id")
        key = (body["session_id"], number)
        if key not in self._opened:
            session = await self._target(body)
            self._opened[key] = session.session_id
        return json_response({"sampling_session_id": self._opened[key], "type": "create_sampling_session"})

    async def sample(self, request: Request) -> Response:
        """The whole answer at once; closing the connection cancels the work."""
        session, asked = await self._parse(request.json())
        loop = self._s.loop
        answer: asyncio.Future = loop.create_future()

        def settle(result: dict | None, error: WorkerError | None) -> None:
            if answer.done():
                return
            if error is not None:
                answer.set_exception(error)
            else:
                answer.set_result(result)

        job = self._job(session, asked, lambda result, error: loop.call_soon_threadsafe(settle, result, error))
        self._s.samples_in_progress += 1
        try:
            self._s.engine.submit(job)
            return json_response(await answer)
        except asyncio.CancelledError:
            job.cancel()
            raise
        finally:
            self._s.samples_in_progress -= 1

    async def asample(self, request: Request) -> Response:
        body = request.json()
        key, digest = None, ""
        if body.get("sampling_session_id") is not None and body.get("seq_id") is not None:
            if isinstance(body["seq_id"], bool) or not isinstance(body["seq_id"], int) or body["seq_id"] < 0:
                raise bad_input("must be a whole number from 0", "seq_id")
            key = (str(body["sampling_session_id"]), body["seq_id"])
            digest = hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()
            known = self._asked.get(key)
            if known is not None and known[0] != digest:
                raise WorkerError("conflict", "seq_id was used by another sample", "seq_id")
            if known is not None and self._s.futures.has(known[1]):
                return json_response({"request_id": known[1]})
        session, asked = await self._parse(body)
        entry = self._s.futures.create(session.model.model_id if session.model else None)
        if key is not None:
            self._asked[key] = (digest, entry.request_id)
            while len(self._asked) > _KEPT_KEYS:
                self._asked.popitem(last=False)
        self._s.samples_in_progress += 1

        def ended(result: dict | None, error: WorkerError | None) -> None:
            self._s.loop.call_soon_threadsafe(self._one_less)
            self._s.futures.settle_from_engine(entry, result, error)

        job = self._job(session, asked, ended)

        def cancel() -> None:
            job.cancel()
            self._one_less()
            self._s.futures.settle(entry, None, WorkerError("cancelled", "the sample was cancelled"))

        entry.cancel = cancel
        self._s.engine.submit(job)
        return json_response({"request_id": entry.request_id})

    def _one_less(self) -> None:
        self._s.samples_in_progress -= 1

    def _job(self, session: SamplingSession, asked: SampleRequest, on_end: Any) -> SampleJob:
        return SampleJob(
            snapshot=session.snapshot,
            prompt=asked.prompt,
            params=asked.params,
            num_samples=asked.num_samples,
            on_end=on_end,
            token_bytes=session.base.token_bytes if asked.params.stop_strings else None,
            prompt_logprobs=asked.prompt_logprobs,
            top_prompt_logprobs=asked.top_prompt_logprobs,
        )

    async def _parse(self, body: dict) -> tuple[SamplingSession, SampleRequest]:
        if self._s.stop_requested.is_set():
            raise WorkerError("busy", "the worker is shutting down", status=503, retry_after_s=5)
        if self._s.samples_in_progress >= self._s.settings.max_waiting:
            raise WorkerError("busy", f"{self._s.samples_in_progress} samples in progress", retry_after_s=1)
        session = await self._target(body)
        return session, parse_sample_request(body, session.base)

    async def _target(self, body: dict) -> SamplingSession:
        """Whose weights: an open sampling session, a stored checkpoint or a base model."""
        if body.get("sampling_session_id") is not None:
            return self._s.models.sampling(body["sampling_session_id"])
        if body.get("model_path") is not None:
            id = parse_path(body["model_path"], "model_path")
            target = id.path
            base = self._s.base_models.get(self._s.checkpoints.get(id).state["base_model"])
        elif body.get("base_model") is not None:
            id = None
            base = self._s.base_models.get(body["base_model"])
            target = f"base:{base.name}"
        else:
            raise bad_input("name sampling_session_id, model_path or base_model", "sampling_session_id")
        known = self._s.models.stored(target)
        if known is not None:
            return known

        def load() -> Snapshot:
            weights = base.make_weights(_BASE_SEED, self._s.device, with_grad=False)
            step = self._s.checkpoints.load(id, weights, None)["step"] if id is not None else 0
            return Snapshot(target, step, weights)

        snapshot = await self._s.on_engine("load for sampling", load)
        session, retired = self._s.models.keep_stored(target, snapshot, base)
        for old in retired:
            self._s.engine.drop_snapshot(old)
        return session
