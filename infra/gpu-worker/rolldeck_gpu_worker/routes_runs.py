"""Training runs and their checkpoints, whether the model is still there or not."""

from __future__ import annotations

import time

from .checkpoints import KINDS, Checkpoint, CheckpointId, check_name, parse_path
from .errors import WorkerError, bad_input
from .hosted_models import canonical_model_id
from .http_server import Request, Response, json_response
from .lora import LoraSpec
from .router import Router
from .service import Service


class RunRoutes:
    def __init__(self, service: Service):
        self._s = service

    def add_to(self, router: Router) -> None:
        router.add("POST", "/api/v1/weights_info", self.weights_info)
        router.add("GET", "/api/v1/training_runs", self.training_runs)
        router.add("GET", "/api/v1/training_runs/{run}", self.training_run)
        router.add("GET", "/api/v1/training_runs/{run}/checkpoints", self.run_checkpoints)
        router.add("GET", "/api/v1/checkpoints", self.all_checkpoints)
        router.add("GET", "/api/v1/training_runs/{run}/checkpoints/{kind}/{name}/archive", self.archive)
        router.add("DELETE", "/api/v1/training_runs/{run}/checkpoints/{checkpoint*}", self.delete_checkpoint)

    async def weights_info(self, request: Request) -> Response:
        checkpoint = self._s.checkpoints.get(parse_path(request.json().get("tinker_path"), "tinker_path"))
        lora = checkpoint.lora
        parts = {} if lora is None else {name: getattr(lora, name) for name in _PARTS}
        return json_response(
            {
                "base_model": checkpoint.state["base_model"],
                "optimizer_config": {"type": "adamw"},
                **_lora_facts(lora),
                **parts,
                "step": checkpoint.state["step"],
            }
        )

    async def training_runs(self, request: Request) -> Response:
        offset, limit = _whole(request, "offset", 0), _whole(request, "limit", 100)
        ids = sorted({*self._s.checkpoints.model_ids(), *(model.model_id for model in self._s.models.all())})
        runs = [run for run in (self._run(model_id) for model_id in ids) if run is not None]
        cursor = {"offset": offset, "limit": limit, "total_count": len(runs)}
        return json_response({"training_runs": runs[offset : offset + limit], "cursor": cursor})

    async def training_run(self, request: Request) -> Response:
        model_id = _run_id(request)
        run = self._run(model_id)
        if run is None:
            raise WorkerError("unknown_model", f"no training run {model_id}", "run")
        return json_response(run)

    async def run_checkpoints(self, request: Request) -> Response:
        return json_response(
            {"checkpoints": [_describe(c) for c in self._s.checkpoints.of_model(_run_id(request))]}
        )

    async def all_checkpoints(self, request: Request) -> Response:
        offset, limit = _whole(request, "offset", 0), _whole(request, "limit", 100)
        ids = self._s.checkpoints.model_ids()
        every = [c for model_id in ids for c in self._s.checkpoints.of_model(model_id)]
        every.sort(key=lambda c: c.state["created_at"], reverse=True)
        cursor = {"offset": offset, "limit": limit, "total_count": len(every)}
        page = [_describe(c) for c in every[offset : offset + limit]]
        return json_response({"checkpoints": page, "cursor": cursor})

    async def archive(self, request: Request) -> Response:
        """An adapter is downloaded as PEFT's folder, all weights as Hugging Face's."""
        p = request.params
        checkpoint = self._s.checkpoints.get(parse_path(f"tinker://{_run_id(request)}/{p['kind']}/{p['name']}"))
        id = checkpoint.id
        form = "hf" if checkpoint.lora is None else "peft"
        location = f"/ext/v1/checkpoints/{id.model_id}/{id.kind}/{id.name}/export?format={form}"
        return Response(302, headers={"Location": location})

    async def delete_checkpoint(self, request: Request) -> Response:
        self._s.guard_files(request.headers)
        kind, _, name = request.params["checkpoint"].partition("/")
        if kind not in KINDS or not name:
            raise WorkerError(
                "bad_input", "name the checkpoint as weights/<name> or sampler_weights/<name>", status=400
            )
        id = CheckpointId(_run_id(request), kind, check_name(name, "name"))
        self._s.checkpoints.delete(id)
        self._s.forget_stored(id)
        return Response(204)

    def _run(self, model_id: str) -> dict | None:
        """None when there is neither a model nor a checkpoint of it."""
        live = next((m for m in self._s.models.all() if m.model_id == model_id), None)
        checkpoints = self._s.checkpoints.of_model(model_id)
        if live is None and not checkpoints:
            return None
        last = {kind: next((_describe(c) for c in reversed(checkpoints) if c.id.kind == kind), None) for kind in KINDS}
        newest = checkpoints[-1] if checkpoints else None
        return {
            "training_run_id": model_id,
            "base_model": live.base.name if live is not None else newest.state["base_model"],
            "model_owner": "local",
            **_lora_facts(live.lora if live is not None else newest.lora),
            "corrupted": False,
            "last_request_time": _iso(live.used_at if live is not None else newest.state["created_at"]),
            "last_checkpoint": last["weights"],
            "last_sampler_checkpoint": last["sampler_weights"],
            "user_metadata": live.user_metadata if live is not None else newest.state.get("run_metadata"),
        }


_PARTS = ("train_unembed", "train_mlp", "train_attn")


def _lora_facts(lora: LoraSpec | None) -> dict:
    return {"is_lora": lora is not None, "lora_rank": lora.rank if lora is not None else None}


def _describe(checkpoint: Checkpoint) -> dict:
    expires_at = checkpoint.state.get("expires_at")
    return {
        "checkpoint_id": f"{checkpoint.id.kind}/{checkpoint.id.name}",
        "checkpoint_type": "training" if checkpoint.id.kind == "weights" else "sampler",
        "tinker_path": checkpoint.id.path,
        "time": _iso(checkpoint.state["created_at"]),
        "size_bytes": checkpoint.bytes,
        "step": checkpoint.state["step"],
        "user_metadata": checkpoint.state.get("user_metadata"),
        "expires_at": None if expires_at is None else _iso(expires_at),
    }


def _run_id(request: Request) -> str:
    return check_name(canonical_model_id(request.params["run"]), "run")


def _iso(seconds: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


def _whole(request: Request, name: str, default: int) -> int:
    raw = request.query.get(name, str(default))
    if not raw.isdigit() or len(raw) > 9:
        raise bad_input("must be a whole number", name)
    return int(raw)
