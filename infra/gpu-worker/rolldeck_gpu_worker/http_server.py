"""A small HTTP/1.1 server on asyncio: keep-alive, bounded bodies, one buffered write per response, no Nagle delay.

A request's handler is cancelled when its connection closes: that is how a client cancels a sample. Requests of one
connection are handled in order."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import socket
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from .errors import WorkerError, as_worker_error, bad_input

log = logging.getLogger(__name__)

MAX_HEADER_BYTES = 32 * 1024
MAX_BODY_BYTES = 64 * 1024 * 1024


@dataclass
class Request:
    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes = b""
    params: dict[str, str] = field(default_factory=dict)

    def json(self) -> dict:
        """The body as a JSON object. @raises WorkerError bad_input"""
        try:
            parsed = json.loads(self.body or b"{}", parse_constant=_no_constant)
        except (ValueError, RecursionError) as error:
            raise bad_input(f"the body is not JSON: {error}") from error
        if not isinstance(parsed, dict):
            raise bad_input("the body must be a JSON object")
        return parsed


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON number")


@dataclass
class Response:
    """`stream`, when given, is sent until it ends and the connection closes after it (or after `length` bytes). It is
    closed when the connection is."""

    status: int = 200
    body: bytes = b""
    content_type: str = "application/json"
    headers: dict[str, str] = field(default_factory=dict)
    stream: AsyncGenerator[bytes, None] | None = None
    length: int | None = None


def json_response(value: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    body = json.dumps(value, separators=(",", ":"), allow_nan=False).encode()
    return Response(status, body, headers=headers or {})


def error_response(error: WorkerError) -> Response:
    headers = {} if error.retry_after_s is None else {"Retry-After": str(error.retry_after_s)}
    return json_response(error.body(), error.status, headers)


Handler = Callable[[Request], Awaitable[Response]]


class HttpConnection(asyncio.Protocol):
    def __init__(self, handler: Handler, connections: set[HttpConnection]):
        self._handler = handler
        self._connections = connections
        self._buffer = bytearray()
        self._head: Request | None = None
        self._body_length = 0
        self._task: asyncio.Task | None = None
        self._transport: asyncio.Transport | None = None
        self._drained = asyncio.Event()
        self._drained.set()
        self._close_after = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._connections.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._connections.discard(self)
        self._drained.set()
        self._transport = None
        if self._task is not None:
            self._task.cancel()

    def pause_writing(self) -> None:
        self._drained.clear()

    def resume_writing(self) -> None:
        self._drained.set()

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        # A client that pipelines without end must not fill memory while one request runs.
        if self._task is not None and len(self._buffer) > MAX_BODY_BYTES:
            self.close()
            return
        self._advance()

    @property
    def busy(self) -> bool:
        return self._task is not None

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()

    def _advance(self) -> None:
        if self._task is not None or self._transport is None:
            return
        try:
            if self._head is None and not self._parse_head():
                return
            if len(self._buffer) < self._body_length:
                return
        except WorkerError as error:
            self._close_after = True
            self._write(error_response(error))
            return
        request, self._head = self._head, None
        request.body = bytes(self._buffer[: self._body_length])
        del self._buffer[: self._body_length]
        self._task = asyncio.get_running_loop().create_task(self._answer(request))

    def _parse_head(self) -> bool:
        end = self._buffer.find(b"\r\n\r\n")
        if (end if end >= 0 else len(self._buffer)) > MAX_HEADER_BYTES:
            raise WorkerError("too_large", "the request head is too large", status=431)
        if end < 0:
            return False
        lines = self._buffer[:end].decode("latin-1").split("\r\n")
        del self._buffer[: end + 4]
        parts = lines[0].split(" ")
        if len(parts) != 3 or not parts[2].startswith("HTTP/1."):
            raise WorkerError("bad_input", "not an HTTP/1.1 request", status=400)
        headers = {}
        for line in lines[1:]:
            name, colon, value = line.partition(":")
            if not colon:
                raise WorkerError("bad_input", "malformed header", status=400)
            headers[name.strip().lower()] = value.strip()
        path, query = _split_target(parts[1])
        self._head = Request(parts[0], path, query, headers)
        self._body_length = _body_length(headers)
        self._close_after = headers.get("connection", "").lower() == "close"
        if headers.get("expect", "").lower() == "100-continue" and self._transport is not None:
            self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        return True

    async def _answer(self, request: Request) -> None:
        try:
            response = await self._handler(request)
        except asyncio.CancelledError:
            return
        except Exception as error:
            typed = as_worker_error(error)
            if typed.code == "internal":
                log.exception("%s %s failed", request.method, request.path)
            response = error_response(typed)
        try:
            if response.stream is not None:
                async with contextlib.aclosing(response.stream):
                    await self._stream(response)
            else:
                self._write(response)
        except Exception:
            # What does not come whole is cut, so that nobody takes it for whole, waits for the rest, or asks on here.
            log.exception("%s %s: the answer ended early", request.method, request.path)
            if self._transport is not None:
                self._transport.abort()
            return
        self._task = None
        self._advance()

    def _write(self, response: Response) -> None:
        if self._transport is None:
            return
        self._transport.write(self._head_bytes(response, len(response.body)) + response.body)
        if self._close_after:
            self._transport.close()

    async def _stream(self, response: Response) -> None:
        if response.length is None:
            self._close_after = True
        if self._transport is not None:
            self._transport.write(self._head_bytes(response, response.length))
        async for part in response.stream:
            await self._drained.wait()
            if self._transport is None:
                return
            self._transport.write(part)
        if self._close_after:
            self.close()

    def _head_bytes(self, response: Response, length: int | None) -> bytes:
        reason = HTTPStatus(response.status).phrase
        lines = [f"HTTP/1.1 {response.status} {reason}", f"Content-Type: {response.content_type}"]
        if length is not None and response.status != 204:
            lines.append(f"Content-Length: {length}")
        if self._close_after:
            lines.append("Connection: close")
        lines += [f"{name}: {value}" for name, value in response.headers.items()]
        return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


def _split_target(target: str) -> tuple[str, dict[str, str]]:
    if "?" not in target and "%" not in target and target.startswith("/"):
        return target, {}
    parts = urlsplit(target)
    return unquote(parts.path), dict(parse_qsl(parts.query))


def _body_length(headers: dict[str, str]) -> int:
    if "transfer-encoding" in headers:
        raise WorkerError("bad_input", "send the body with Content-Length", status=411)
    # Compressed bodies are refused: their decompressed size can not be bounded before reading them.
    if headers.get("content-encoding", "identity").lower() != "identity":
        raise WorkerError("bad_input", "compressed bodies are not accepted", "content-encoding", status=415)
    raw = headers.get("content-length", "0")
    if not raw.isdigit():
        raise WorkerError("bad_input", "Content-Length is not a number", status=400)
    length = int(raw)
    if length > MAX_BODY_BYTES:
        raise WorkerError("too_large", f"the body has {length} bytes; {MAX_BODY_BYTES} are allowed")
    return length


class HttpServer:
    def __init__(self, handler: Handler):
        self._handler = handler
        self._connections: set[HttpConnection] = set()
        self._server: asyncio.Server | None = None

    async def listen(self, host: str, port: int) -> int:
        """Starts listening; returns the port (useful with port 0)."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(
            lambda: HttpConnection(self._handler, self._connections), host, port, backlog=4096
        )
        return self._server.sockets[0].getsockname()[1]

    async def close(self, grace_s: float) -> None:
        """Stops listening and waits for answers in progress, at most `grace_s`."""
        if self._server is not None:
            self._server.close()
        deadline = asyncio.get_running_loop().time() + grace_s
        while any(connection.busy for connection in self._connections):
            if asyncio.get_running_loop().time() > deadline:
                break
            await asyncio.sleep(0.02)
        for connection in list(self._connections):
            connection.close()
