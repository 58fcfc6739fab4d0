"""What a client asks first: health, capabilities, its own settings, and its session."""

from __future__ import annotations

from .errors import bad_input
from .http_server import Request, Response, json_response
from .router import Router
from .service import Service
from .sessions import Session

_FINISHES = ("success", "errored", "interrupted")


class SessionRoutes:
    def __init__(self, service: Service):
        self._s = service

    def add_to(self, router: Router) -> None:
        router.add("GET", "/api/v1/healthz", self.healthz)
        router.add("GET", "/api/v1/get_server_capabilities", self.capabilities)
        router.add("POST", "/api/v1/client/config", self.client_config)
        router.add("POST", "/api/v1/client/dynamic_config", self.dynamic_config)
        router.add("POST", "/api/v1/telemetry", self.telemetry)
        router.add("POST", "/api/v1/create_session", self.create_session)
        router.add("POST", "/api/v1/session_heartbeat", self.heartbeat)
        router.add("GET", "/api/v1/sessions", self.sessions)
        router.add("GET", "/api/v1/sessions/{id}", self.session)
        router.add("POST", "/api/v1/sessions/{id}/finish", self.finish)

    async def healthz(self, _: Request) -> Response:
        return json_response({"status": "ok"})

    async def capabilities(self, _: Request) -> Response:
        models = [
            {"model_name": base.name, "max_context_length": base.config.max_context}
            for base in self._s.base_models.all()
        ]
        return json_response({"supported_models": models})

    async def client_config(self, request: Request) -> Response:
        """No compressed bodies: they are refused. The plain HTTP backend: the other one may send bodies without a length."""
        request.json()
        return json_response(
            {"pjwt_auth_enabled": False, "proto_compress_fwdbwd": False, "use_pyqwest_transport": False}
        )

    async def dynamic_config(self, request: Request) -> Response:
        request.json()
        return json_response({"sample_cancel_enabled": True})

    async def telemetry(self, request: Request) -> Response:
        request.json()
        return json_response({"status": "accepted"})

    async def create_session(self, request: Request) -> Response:
        metadata = request.json().get("user_metadata")
        session = self._s.sessions.open(metadata if isinstance(metadata, dict) else None)
        return json_response({"session_id": session.session_id, "type": "create_session"})

    async def heartbeat(self, request: Request) -> Response:
        self._s.sessions.heartbeat(request.json().get("session_id"))
        return json_response({"type": "session_heartbeat"})

    async def sessions(self, _: Request) -> Response:
        return json_response({"sessions": self._s.sessions.ids()})

    async def session(self, request: Request) -> Response:
        session = self._s.sessions.get(request.params["id"])
        models = self._s.models.of_session(session.session_id)
        return json_response(
            {
                "training_run_ids": [model.model_id for model in models],
                "sampler_ids": [id for model in models for id in self._s.models.served(model)],
                "user_metadata": _texts(session),
            }
        )

    async def finish(self, request: Request) -> Response:
        """The client is done: what it trained and did not save is saved, and its models are unloaded."""
        reason = request.json().get("reason")
        if not isinstance(reason, dict) or reason.get("type") not in _FINISHES:
            raise bad_input(f"must be one of {', '.join(_FINISHES)}", "reason.type")
        session = self._s.sessions.get(request.params["id"])
        for model in self._s.models.of_session(session.session_id):
            self._s.guard(request.headers, model)
        await self._s.close_session(session, "finished")
        return json_response({"type": "client_finished", "reason": {"type": reason["type"]}})


def _texts(session: Session) -> dict[str, str] | None:
    metadata = session.user_metadata
    return None if metadata is None else {str(key): str(value) for key, value in metadata.items()}
