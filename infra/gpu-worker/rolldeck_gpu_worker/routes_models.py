"""Models under training and the futures of what is asked of them."""

from __future__ import annotations

import asyncio

from .errors import as_worker_error, bad_input
from .futures import FutureEntry
from .http_server import Request, Response, json_response
from .lora import parse_lora
from .model_creation import NewModel, check_optimizer, create_model, parse_number, parse_user_metadata
from .router import Router
from .service import Service
from .tinker_proto import PROTO_TYPE, encode_result

# A retrieve_future answers try_again after this long; the official client gives up at 45 s.
_LONG_POLL_S = 30.0


class ModelRoutes:
    def __init__(self, service: Service):
        self._s = service

    def add_to(self, router: Router) -> None:
        router.add("POST", "/api/v1/create_model", self.create_model)
        router.add("POST", "/api/v1/get_info", self.get_info)
        router.add("POST", "/api/v1/unload_model", self.unload_model)
        router.add("POST", "/api/v1/retrieve_future", self.retrieve_future)
        router.add("POST", "/api/v1/cancel_future", self.cancel_future)

    async def create_model(self, request: Request) -> Response:
        body = request.json()
        session = self._s.sessions.heartbeat(body.get("session_id"))
        run = self._s.guard_files(request.headers)
        base = self._s.base_models.get(body.get("base_model"))
        lora, seed = parse_lora(body.get("lora_config"), self._s.settings.max_lora_rank)
        check_optimizer(body.get("optimizer_config"))
        metadata = parse_user_metadata(body.get("user_metadata"))
        asked = NewModel(session.session_id, parse_number(body), base, lora, seed, metadata, run)
        return json_response(create_model(self._s, asked, "create_model"))

    async def get_info(self, request: Request) -> Response:
        model = self._s.models.get(request.json().get("model_id"))
        name = model.base.name
        return json_response(
            {
                "type": "get_info",
                "model_id": model.model_id,
                "model_name": name,
                "model_data": {"arch": model.base.config.runner, "model_name": name, "tokenizer_id": name},
                "optimizer_config": {"type": "adamw"},
                "is_lora": model.lora is not None,
                "lora_rank": model.lora.rank if model.lora is not None else 0,
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
        """A finished result as JSON, or as the protocol's message where the client accepts that and there is one."""
        entry = self._entry(request)
        if not entry.done.done():
            await asyncio.wait([entry.done], timeout=_LONG_POLL_S)
        if not entry.done.done():
            return json_response({"type": "try_again", "request_id": entry.request_id, "queue_state": "active"})
        if entry.error is None:
            if PROTO_TYPE in request.headers.get("accept", ""):
                encoded = await asyncio.to_thread(encode_result, entry.result or b"{}")
                if encoded is not None:
                    return Response(body=encoded, content_type=PROTO_TYPE)
            return Response(body=entry.result or b"{}")
        if entry.error.status < 500:
            raise as_worker_error(entry.error)
        return json_response(entry.error.future_body())

    async def cancel_future(self, request: Request) -> Response:
        """The client gave a sample up. Training is not cancelled this way: its order would have a hole."""
        entry = self._entry(request)
        if entry.cancel is not None and entry.is_sample:
            entry.cancel()
        return json_response({"type": "cancel_future"})

    def _entry(self, request: Request) -> FutureEntry:
        request_id = request.json().get("request_id")
        if not isinstance(request_id, str):
            raise bad_input("must be a text", "request_id")
        return self._s.futures.get(request_id)
