"""A server over real HTTP that answers from a list."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class ScriptedServer:
    """Answers in turn: a status with a body, or None to cut the connection. The last one is given again and again."""

    def __init__(self, answers: list[tuple[int, Any] | None]):
        self.asked: list[tuple[str, str, Any, str | None]] = []
        self._answers = answers
        self._lock = threading.Lock()

    def next(self) -> tuple[int, Any] | None:
        with self._lock:
            return self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]


@contextmanager
def serving(*answers: tuple[int, Any] | None) -> Iterator[tuple[str, ScriptedServer]]:
    """Yields the server's address, and what it was asked."""
    script = ScriptedServer(list(answers))

    class Handler(BaseHTTPRequestHandler):
        def _answer(self) -> None:
            length = int(self.headers.get("content-length") or 0)
            body = json.loads(self.rfile.read(length)) if length else None
            script.asked.append((self.command, self.path, body, self.headers.get("authorization")))
            answer = script.next()
            if answer is None:
                self.close_connection = True
                self.connection.close()
                return
            status, said = answer
            content = said if isinstance(said, bytes) else json.dumps(said).encode()
            self.send_response(status)
            if status == 307:
                self.send_header("location", "/elsewhere")
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = _answer

        def log_message(self, *_args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", script
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
