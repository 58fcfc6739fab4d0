"""Sessions, models, futures and training runs of the Tinker protocol."""

from __future__ import annotations

import asyncio
import time

from .checkpoints import KINDS, Checkpoint, CheckpointId, check_name, parse_path
from .errors import WorkerError, as_worker_error, bad_input
from .hosted_models import HostedModel
from .http_server import Request, Response, json_response
from .journal import StepJournal
from .router import Router
from .service import Service
from .trainer import Trainer

# A retrieve_future answers try_again after this long; the official client gives up at 45 s.
_LONG_POLL_S = 30.0


class ModelRoutes:
    def __init__(self, service: Service):
        self._s = service

    def add_to(self, router: Router) -> None:
        router.add("GET", "/api/v1/healthz", self.healthz)
        router.add("GET", "/api/v1/get_server_capabilities", self.capabilities)
        router.add("POST", "/api/v1/client/config", self.client_config)
        router.add("POST", "/api/v1/telemetry", self.telemetry)
        router.add("POST", "/api/v1/create_session", self.create_session)
        router.add("POST", "/api/v1/session_heartbeat", self.heartbeat)
        router.add("POST", "/api/v1/create_model", self.create_model)
        router.add("POST", "/api/v1/get_info", self.get_info)
        router.add("POST", "/api/v1/unload_model", self.unload_model)
        router.add("POST", "/api/v1/retrieve_future", self.retrieve_future)
        router.add("POST", "/api/v1/weights_info", self.weights_info)
        router.add("GET", "/api/v1/training_runs", self.training_runs)
        router.add("GET", "/api/v1/training_runs/{run}", self.training_run)
        router.add("GET", "/api/v1/training_runs/{run}/checkpoints", self.run_checkpoints)
        router.add("GET", "/api/v1/training_runs/{run}/checkpoints/{kind}/{name}/archive", self.archive)
        router.add("DELETE", "/api/v1/training_runs/{run}/checkpoints/{checkpoint*}", self.delete_checkpoint)

    async def healthz(self, _: Request) -> Response:
        return json_response({"status": "ok"})

    async def capabilities(self, _: Request) -> Response:
        models = [
            {"model_name": base.name, "max_context_length": base.config.max_context}
            for base in self._s.base_models.all()
        ]
        return json_response({"supported_models": models})

    async def client_config(self, request: Request) -> Response:
        request.json()
        return json_response({"pjwt_auth_enabled": False, "proto_compress_fwdbwd": False})

    async def telemetry(self, request: Request) -> Response:
        request.json()
        return json_response({"status": "accepted"})

    async def create_session(self, request: Request) -> Response:
        request.json()
        session = self._s.sessions.open()
        return json_response({"session_id": session.session_id, "type": "create_session"})

    async def heartbeat(self, request: Request) -> Response:
        self._s.sessions.heartbeat(request.json().get("session_id"))
        return json_response({"type": "session_heartbeat"})

    async def create_model(self, request: Request) -> Response:
        body = request.json()
        session = self._s.sessions.heartbeat(body.get("session_id"))
        run = self._s.guard(request.headers)
        base = self._s.base_models.get(body.get("base_model"))
        seed = _full_fine_tune_seed(body.get("lora_config"))
        number = body.get("model_seq_id", 0)
        if isinstance(number, bool) or not isinstance(number, int) or number < 0:
            raise bad_input("must be a whole number from 0", "model_seq_id")
        key, payload = (session.session_id, number), (base.name, seed, run)
        known = self._s.models.creation(key, payload)
        if known is not None:
            return json_response({"model_id": known[0], "request_id": known[1]})
        model_id = f"{session.session_id}-m{number}"
        model = HostedModel(model_id, base, seed, session.session_id, run, StepJournal(self._s.settings.gap_wait_s))
        entry = self._s.futures.create(model_id)
        self._s.models.add(model, key, payload, entry.request_id)

        def create() -> dict:
            weights = base.make_weights(seed, self._s.device, with_grad=True)
            model.trainer = Trainer(weights, self._s.engine.rope(base.config), self._s.settings.micro_batch_tokens)
            return {"model_id": model_id, "type": "create_model"}

        def ended() -> None:
            if model.trainer is None:
                self._s.unload(model)

        self._s.queue(entry, "create_model", create, ended)
        return json_response({"model_id": model_id, "request_id": entry.request_id})

    async def get_info(self, request: Request) -> Response:
        model = self._s.models.get(request.json().get("model_id"))
        return json_response(
            {
                "type": "get_info",
                "model_id": model.model_id,
                "model_name": model.base.name,
                "model_data": {"arch": "qwen3", "model_name": model.base.name, "tokenizer_id": model.base.name},
                "is_lora": False,
                "lora_rank": 0,
            }
        )

    async def unload_model(self, request: Request) -> Response:
        model = self._s.models.get(request.json().get("model_id"))
        self._s.guard(request.headers, model)
        entry = self._s.futures.create()
        result = {"model_id": model.model_id, "type": "unload_model"}
        self._s.queue(entry, "unload_model", lambda: result, lambda: self._s.unload(model))
        return json_response({"request_id": entry.request_id, "model_id": model.model_id})

    async def retrieve_future(self, request: Request) -> Response:
        request_id = request.json().get("request_id")
        if not isinstance(request_id, str):
            raise bad_input("must be a text", "request_id")
        entry = self._s.futures.get(request_id)
        if not entry.done.done():
            await asyncio.wait([entry.done], timeout=_LONG_POLL_S)
        if not entry.done.done():
            return json_response({"type": "try_again", "request_id": request_id, "queue_state": "active"})
        if entry.error is None:
            return Response(body=entry.result or b"{}")
        if entry.error.status < 500:
            raise as_worker_error(entry.error)
        return json_response(entry.error.future_body())

    async def weights_info(self, request: Request) -> Response:
        checkpoint = self._s.checkpoints.get(parse_path(request.json().get("tinker_path"), "tinker_path"))
        return json_response(
            {
                "base_model": checkpoint.state["base_model"],
                "is_lora": False,
                "lora_rank": None,
                "step": checkpoint.state["step"],
            }
        )

    async def training_runs(self, request: Request) -> Response:
        offset, limit = _whole(request, "offset", 0), _whole(request, "limit", 100)
        ids = sorted({*self._s.checkpoints.model_ids(), *(model.model_id for model in self._s.models.all())})
        page = [self._run(model_id) for model_id in ids[offset : offset + limit]]
        cursor = {"offset": offset, "limit": limit, "total_count": len(ids)}
        return json_response({"training_runs": page, "cursor": cursor})

    async def training_run(self, request: Request) -> Response:
        return json_response(self._run(check_name(request.params["run"], "run")))

    async def run_checkpoints(self, request: Request) -> Response:
        run = check_name(request.params["run"], "run")
        return json_response({"checkpoints": [_describe(c) for c in self._s.checkpoints.of_model(run)]})

    async def archive(self, request: Request) -> Response:
        p = request.params
        id = parse_path(f"tinker://{p['run']}/{p['kind']}/{p['name']}")
        self._s.checkpoints.get(id)
        location = f"/ext/v1/checkpoints/{id.model_id}/{id.kind}/{id.name}/export?format=hf"
        return Response(302, headers={"Location": location})

    async def delete_checkpoint(self, request: Request) -> Response:
        self._s.guard(request.headers)
        kind, _, name = request.params["checkpoint"].partition("/")
        if kind not in KINDS or not name:
            raise WorkerError(
                "bad_input", "name the checkpoint as weights/<name> or sampler_weights/<name>", status=400
            )
        id = CheckpointId(check_name(request.params["run"], "run"), kind, check_name(name, "name"))
        self._s.checkpoints.delete(id)
        return Response(204)

    def _run(self, model_id: str) -> dict:
        live = next((m for m in self._s.models.all() if m.model_id == model_id), None)
        checkpoints = self._s.checkpoints.of_model(model_id)
        if live is None and not checkpoints:
            raise WorkerError("unknown_model", f"no training run {model_id}", "run")
        last = {kind: next((_describe(c) for c in reversed(checkpoints) if c.id.kind == kind), None) for kind in KINDS}
        used = live.used_at if live is not None else checkpoints[-1].state["created_at"]
        return {
            "training_run_id": model_id,
            "base_model": live.base.name if live is not None else checkpoints[-1].state["base_model"],
            "model_owner": "local",
            "is_lora": False,
            "corrupted": False,
            "lora_rank": None,
            "last_request_time": _iso(used),
            "last_checkpoint": last["weights"],
            "last_sampler_checkpoint": last["sampler_weights"],
        }


def _describe(checkpoint: Checkpoint) -> dict:
    return {
        "checkpoint_id": f"{checkpoint.id.kind}/{checkpoint.id.name}",
        "checkpoint_type": "training" if checkpoint.id.kind == "weights" else "sampler",
        "tinker_path": checkpoint.id.path,
        "time": _iso(checkpoint.state["created_at"]),
        "size_bytes": checkpoint.bytes,
        "step": checkpoint.state["step"],
    }


def _iso(seconds: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


def _whole(request: Request, name: str, default: int) -> int:
    raw = request.query.get(name, str(default))
    if not raw.isdigit() or len(raw) > 9:
        raise bad_input("must be a whole number", name)
    return int(raw)


def _full_fine_tune_seed(raw: object) -> int:
    """Only rank 0 (all weights are trained) is implemented. @raises WorkerError bad_input"""
    raw = {} if raw is None else raw
    if not isinstance(raw, dict):
        raise bad_input("must be an object", "lora_config")
    if raw.get("rank", 0) != 0:
        raise bad_input("this worker trains all weights: rank must be 0", "lora_config.rank")
    seed = raw.get("seed")
    seed = 0 if seed is None else seed
    if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < 2**63:
        raise bad_input("must be a whole number from 0", "lora_config.seed")
    return seed
