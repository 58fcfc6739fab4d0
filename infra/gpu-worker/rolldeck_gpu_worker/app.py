"""The process: authentication in front of the routes, start, and an orderly end."""

from __future__ import annotations

import asyncio
import gc
import hmac
import json
import os
import signal
import sys

from .errors import WorkerError
from .http_server import HttpServer, Request, Response
from .router import Router
from .routes_checkpoints import CheckpointRoutes
from .routes_ext import ExtRoutes
from .routes_models import ModelRoutes
from .routes_runs import RunRoutes
from .routes_sampling import SamplingRoutes
from .routes_sessions import SessionRoutes
from .routes_training import TrainingRoutes
from .service import Service
from .settings import Settings

_OPEN_PATHS = ("/api/v1/healthz",)
_PARENT_POLL_S = 0.5


class Gate:
    """Lets a request through to the router when it carries the key."""

    def __init__(self, api_key: str, router: Router):
        self._key = api_key.encode()
        self._router = router

    async def __call__(self, request: Request) -> Response:
        if request.path not in _OPEN_PATHS:
            given = request.headers.get("x-api-key", "").encode("latin-1", "replace")
            if not hmac.compare_digest(given, self._key):
                raise WorkerError("unauthorised", "send the worker's key in X-API-Key")
        return await self._router(request)


def build_router(service: Service) -> Router:
    router = Router()
    for make in (SessionRoutes, ModelRoutes, RunRoutes, TrainingRoutes, SamplingRoutes, ExtRoutes, CheckpointRoutes):
        make(service).add_to(router)
    return router


async def watch_parent(service: Service, parent: int) -> None:
    """A worker without its supervisor would hold the device for nobody. 0 and 1 are a container's outside and init."""
    while parent > 1:
        if os.getppid() != parent:
            service.stop_requested.set()
            return
        await asyncio.sleep(_PARENT_POLL_S)


async def serve(settings: Settings, parent: int) -> None:
    """Runs until SIGTERM, SIGINT, /ext/v1/shutdown or the parent's death; then saves and returns.

    @param parent: process id of the supervisor, read when the process started"""
    service = Service(settings)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, service.stop_requested.set)
    service.engine.start()
    server = HttpServer(Gate(settings.api_key, build_router(service)))
    port = await server.listen(settings.host, settings.port)
    # Everything loaded so far lives as long as the process: full collections need not walk it (they stalled answers).
    gc.collect()
    gc.freeze()
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    print(json.dumps({"url": f"http://{host}:{port}", "boot_id": service.boot_id}), flush=True)
    background = [asyncio.create_task(service.watch_sessions()), asyncio.create_task(watch_parent(service, parent))]
    await service.stop_requested.wait()
    for task in background:
        task.cancel()
    # The engine's end settles every request in progress, so that their answers still go out.
    await asyncio.to_thread(service.shut_down)
    await server.close(grace_s=2)
    sys.stdout.flush()
