"""Whether a stored checkpoint is whole: asked before a run begins with it."""

from __future__ import annotations

import asyncio

from .checkpoints import parse_path
from .http_server import Request, Response, json_response
from .router import Router
from .service import Service


class CheckpointRoutes:
    def __init__(self, service: Service):
        self._s = service

    def add_to(self, router: Router) -> None:
        router.add("GET", "/ext/v1/checkpoints/{model}/{kind}/{name}/verify", self.verify)

    async def verify(self, request: Request) -> Response:
        """Reads every file and compares its sha256. A damaged checkpoint is a conflict, a missing one unknown_model."""
        p = request.params
        id = parse_path(f"tinker://{p['model']}/{p['kind']}/{p['name']}")
        checkpoint = await asyncio.to_thread(self._s.checkpoints.verified, id)
        return json_response(
            {
                "path": id.path,
                "step": checkpoint.state["step"],
                "base_model": checkpoint.state["base_model"],
                "bytes": checkpoint.bytes,
                "content_sha256": checkpoint.manifest["content_sha256"],
            }
        )
