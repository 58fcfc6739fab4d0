"""Sampling: sampling sessions, asample (two calls) and sample (one call); scoring of rows that are there already."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections import OrderedDict
from typing import Any

from .base_models import BASE_SEED, BaseModel
from .checkpoints import CheckpointId, parse_path
from .engine import SampleJob
from .errors import WorkerError, bad_input
from .hosted_models import SamplingSession
from .http_server import Request, Response, json_response
from .lora import LoraSpec
from .router import Router
from .sample_requests import SampleRequest, parse_sample_request
from .scoring import parse_score_request, score
from .service import Service
from .snapshots import Snapshot
from .streamed_sample import StreamedSample

_KEPT_KEYS = 50_000


class SamplingRoutes:
    def __init__(self, service: Service):
        self._s = service
        self._asked: OrderedDict[tuple[str, int], tuple[str, str]] = OrderedDict()
        # What each session that a client opened samples. The ids are its own; weights are shared by target.
        self._opened: OrderedDict[str, dict] = OrderedDict()
        # Loads under way: whoever else asks for the same weights meanwhile waits with the first.
        self._loading: dict[str, asyncio.Task[SamplingSession]] = {}

    def add_to(self, router: Router) -> None:
        router.add("POST", "/api/v1/create_sampling_session", self.create_sampling_session)
        router.add("GET", "/api/v1/samplers/{id}", self.sampler)
        router.add("POST", "/api/v1/asample", self.asample)
        router.add("POST", "/ext/v1/sample", self.sample)
        router.add("POST", "/ext/v1/score", self.score)

    async def create_sampling_session(self, request: Request) -> Response:
        body = request.json()
        self._s.sessions.heartbeat(body.get("session_id"))
        number = body.get("sampling_session_seq_id", 0)
        if isinstance(number, bool) or not isinstance(number, int):
            raise bad_input("must be a whole number", "sampling_session_seq_id")
        id = f"{body['session_id']}-s{number}"
        if id not in self._opened:
            target = {key: body[key] for key in ("model_path", "base_model") if body.get(key) is not None}
            await self._stored(target)
            self._opened[id] = target
            while len(self._opened) > _KEPT_KEYS:
                self._opened.popitem(last=False)
        return json_response({"sampling_session_id": id, "type": "create_sampling_session"})

    async def sampler(self, request: Request) -> Response:
        """What a sampling session samples."""
        id = request.params["id"]
        session = await self._target({"sampling_session_id": id})
        path = self._opened.get(id, {}).get("model_path")
        return json_response({"sampler_id": id, "base_model": session.base.name, "model_path": path})

    async def sample(self, request: Request) -> Response:
        """The whole answer at once, or with `stream` as it is made; closing the connection cancels the work."""
        body = request.json()
        stream = body.get("stream", False)
        if not isinstance(stream, bool):
            raise bad_input("must be true or false", "stream")
        session, asked = await self._parse(body)
        if stream:
            return await self._streamed(session, asked)
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

    async def _streamed(self, session: SamplingSession, asked: SampleRequest) -> Response:
        if asked.prompt_logprobs or asked.top_prompt_logprobs:
            raise bad_input("is not told as it is made: ask without stream", "prompt_logprobs")
        told = StreamedSample(self._s.loop, asked.num_samples)
        job = self._job(session, asked, told.on_end)
        job.on_step = told.on_step
        self._s.samples_in_progress += 1

        def close() -> None:
            job.cancel()
            self._s.samples_in_progress -= 1

        try:
            self._s.engine.submit(job)
            first = await told.first()
        except BaseException:
            close()
            raise
        return Response(content_type="application/x-ndjson", stream=told.lines(first, close))

    async def score(self, request: Request) -> Response:
        """Log-probabilities of whole rows under a sampling session's, a stored checkpoint's or a base model's weights."""
        body = request.json()
        session = await self._target(body)
        asked = parse_score_request(body, session.base)
        weights = session.snapshot.weights
        budget = self._s.settings.micro_batch_tokens
        return json_response(await self._s.on_engine("score", lambda: score(weights, asked, budget)))

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
                return json_response(_promise(known[1], body))
        session, asked = await self._parse(body)
        entry = self._s.futures.create(session.model.model_id if session.model else None)
        entry.is_sample = True
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
        return json_response(_promise(entry.request_id, body))

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
            prompt_logprobs_last=asked.prompt_logprobs_last,
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
        id = body.get("sampling_session_id")
        if id is None:
            return await self._stored(body)
        opened = self._opened.get(id) if isinstance(id, str) else None
        return self._s.models.sampling(id) if opened is None else await self._stored(opened)

    async def _stored(self, body: dict) -> SamplingSession:
        """Loads a stored checkpoint or a base model, unless it is loaded."""
        if body.get("model_path") is not None:
            id = parse_path(body["model_path"], "model_path")
            target = id.path
            checkpoint = self._s.checkpoints.get(id)
            base, lora = self._s.base_models.get(checkpoint.state["base_model"]), checkpoint.lora
        elif body.get("base_model") is not None:
            id, lora = None, None
            base = self._s.base_models.get(body["base_model"])
            target = f"base:{base.name}"
        else:
            raise bad_input("name sampling_session_id, model_path or base_model", "sampling_session_id")
        known = self._s.models.stored(target)
        if known is not None:
            return known
        loading = self._loading.get(target)
        if loading is None:
            loading = asyncio.create_task(self._load(target, id, base, lora))
            self._loading[target] = loading
            loading.add_done_callback(lambda _: self._loading.pop(target, None))
        # Who gives up ends its own wait only.
        return await asyncio.shield(loading)

    async def _load(
        self, target: str, id: CheckpointId | None, base: BaseModel, lora: LoraSpec | None
    ) -> SamplingSession:
        def load() -> Snapshot:
            device = self._s.device
            if id is None:
                return Snapshot(target, 0, base.frozen(device))
            weights = base.make_for(lora, BASE_SEED, device, with_grad=False)
            step = self._s.checkpoints.load(id, weights, None)["step"]
            # What samples is merged, and kept in what it computes in.
            as_is = lora is None and weights.flat.dtype == weights.compute
            return Snapshot(target, step, weights if as_is else weights.snapshot())

        snapshot = await self._s.on_engine("load for sampling", load)
        session, retired = self._s.models.keep_stored(target, snapshot, base)
        for old in retired:
            self._s.engine.drop_snapshot(old)
        return session


def _promise(request_id: str, body: dict) -> dict:
    """Each sequence has a name from the start."""
    return {
        "request_id": request_id,
        "sample_sequence_ids": [f"{request_id}-{index}" for index in range(body.get("num_samples", 1))],
    }
