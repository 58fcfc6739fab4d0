"""Maps method and path to a handler. A pattern segment in braces captures one segment; `{name*}` captures the rest."""

from __future__ import annotations

from .errors import WorkerError
from .http_server import Handler, Request, Response


class Router:
    def __init__(self) -> None:
        self._exact: dict[tuple[str, str], Handler] = {}
        self._patterns: list[tuple[str, list[str], Handler]] = []
        self._methods: dict[str, set[str]] = {}

    def add(self, method: str, pattern: str, handler: Handler) -> None:
        if "{" in pattern:
            self._patterns.append((method, pattern.strip("/").split("/"), handler))
        else:
            self._exact[method, pattern] = handler
            self._methods.setdefault(pattern, set()).add(method)

    async def __call__(self, request: Request) -> Response:
        handler = self._exact.get((request.method, request.path))
        if handler is None:
            handler = self._match(request)
        return await handler(request)

    def _match(self, request: Request) -> Handler:
        segments = request.path.strip("/").split("/")
        allowed = set(self._methods.get(request.path, ()))
        for method, pattern, handler in self._patterns:
            params = _capture(pattern, segments)
            if params is None:
                continue
            if method == request.method:
                request.params = params
                return handler
            allowed.add(method)
        if allowed:
            raise WorkerError("bad_input", f"use {' or '.join(sorted(allowed))}", status=405)
        raise WorkerError("bad_input", f"no such path: {request.path[:200]}", status=404)


def _capture(pattern: list[str], segments: list[str]) -> dict[str, str] | None:
    params = {}
    for index, part in enumerate(pattern):
        if part.endswith("*}"):
            rest = segments[index:]
            return {**params, part[1:-2]: "/".join(rest)} if rest else None
        if index >= len(segments):
            return None
        if part.startswith("{"):
            params[part[1:-1]] = segments[index]
        elif part != segments[index]:
            return None
    return params if len(pattern) == len(segments) else None
