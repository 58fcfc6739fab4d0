"""Rolldeck's REST API as a trainer needs it. Every request may be sent again: batches are idempotent by (run, trainer
step), heartbeats and reads change nothing by repetition. Only the standard library."""

from __future__ import annotations

import http.client
import json
import os
import random
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable
from typing import Any

from .errors import ApiError, BridgeError, UnreachableError

_TIMEOUT_S = 60.0
_FIRST_DELAY_S, _LONGEST_DELAY_S = 0.25, 10.0
# Another answer may come later; all others are final.
_PASSING = frozenset({408, 425, 429, 500, 502, 503, 504})
_MAX_ERROR_BYTES = 64 * 1024


def connection() -> dict[str, str]:
    """What `RolldeckApi` needs, from the environment. @raises BridgeError that names what is not set"""
    names = {"url": "ROLLDECK_URL", "token": "ROLLDECK_TOKEN", "run_id": "ROLLDECK_RUN"}
    missing = [name for name in names.values() if not os.environ.get(name)]
    if missing:
        raise BridgeError(f"set {', '.join(missing)} in the environment")
    return {key: os.environ[name] for key, name in names.items()}


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """The token goes to the address that was given and to no other."""

    def redirect_request(self, *_args: Any) -> None:
        return None


class RolldeckApi:
    """One run on one server.

    @param url: origin of the server, `http://127.0.0.1:3000`
    @param token: an API token that may write
    @param patience_s: how long a request is tried again while the server does not answer
    @param sleep: waits so many seconds"""

    def __init__(
        self,
        url: str,
        token: str,
        run_id: str,
        *,
        patience_s: float = 600.0,
        sleep: Callable[[float], None] = time.sleep,
    ):
        parts = urllib.parse.urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.netloc:
            raise ValueError(f"url: {url!r} is no address; give one like http://127.0.0.1:3000")
        if not token or any(letter.isspace() for letter in token):
            raise ValueError("token: give an API token (`npx rolldeck token create`)")
        if not run_id:
            raise ValueError("run_id: give the id of a run with stepSource: driven")
        self.run_id = run_id
        self._base = f"{url.rstrip('/')}/api/v1/runs/{urllib.parse.quote(run_id, safe='')}"
        self._token = token
        self._patience_s = patience_s
        self._sleep = sleep
        self._opener = urllib.request.build_opener(_NoRedirect)

    def run(self) -> dict[str, Any]:
        """The run: `status`, `reason` and all the rest."""
        return self._ask("GET", "", "reading the run")

    def resume(self) -> str:
        """Lets a paused run go on. @returns its status"""
        return self._ask("POST", "/resume", "resuming the run", {})["status"]

    def heartbeat(self, lease_ms: int, policy_version: int | None = None) -> str:
        """Renews the trainer's lease, and tells the version that its engines serve. @returns the run's status"""
        body: dict[str, Any] = {"leaseMs": lease_ms}
        if policy_version is not None:
            body["policyVersion"] = policy_version
        return self._ask("POST", "/heartbeat", "the heartbeat", body)["status"]

    def request_batch(self, body: dict[str, Any]) -> str:
        """Asks for rollouts. @returns the batch's id, the same one however often it is asked"""
        return self._ask("POST", "/batches", f"asking for step {body['trainerStep']}", body)["batchId"]

    def read_batch(self, batch_id: str, cursor: int, limit: int) -> dict[str, Any]:
        """What has settled after the cursor: `rollouts`, the next `cursor`, `state`, and `done` when that was all."""
        query = urllib.parse.urlencode({"cursor": cursor, "limit": limit})
        return self._ask("GET", f"/batches/{urllib.parse.quote(batch_id, safe='')}?{query}", "reading the batch")

    def _ask(self, method: str, path: str, what: str, body: dict[str, Any] | None = None) -> Any:
        """@raises ApiError when the server refuses, UnreachableError when it stays away"""
        end = time.monotonic() + self._patience_s
        delay = _FIRST_DELAY_S
        while True:
            try:
                return self._send(method, path, what, body)
            except ApiError as error:
                failure: Exception = error
                if error.status not in _PASSING:
                    raise
            except (OSError, http.client.HTTPException, ValueError) as error:
                # A connection that broke, or an answer that was cut.
                failure = error
            if time.monotonic() + delay > end:
                raise UnreachableError(f"{what}: no answer for {self._patience_s:.0f} s: {failure}") from failure
            # Many trainers of one server do not come back at the same moment.
            self._sleep(delay * random.uniform(0.8, 1.2))
            delay = min(delay * 2, _LONGEST_DELAY_S)

    def _send(self, method: str, path: str, what: str, body: dict[str, Any] | None) -> Any:
        headers = {"Authorization": f"Bearer {self._token}", "Accept": "application/json"}
        content = None
        if body is not None:
            content = json.dumps(body).encode()
            headers["Content-Type"] = "application/json"
        request = urllib.request.Request(self._base + path, data=content, headers=headers, method=method)
        try:
            with self._opener.open(request, timeout=_TIMEOUT_S) as answer:
                return json.loads(answer.read())
        except urllib.error.HTTPError as error:
            with error:
                detail = _detail(error.read(_MAX_ERROR_BYTES))
            raise ApiError(what, error.code, detail) from None


def _detail(body: bytes) -> str:
    """Text of an RFC 9457 problem with its fields, or of whatever else came."""
    try:
        problem = json.loads(body)
    except ValueError:
        return body[:200].decode("utf-8", "replace")
    if not isinstance(problem, dict):
        return str(problem)[:200]
    fields = [f"{issue.get('path')}: {issue.get('message')}" for issue in problem.get("errors") or []]
    return "; ".join([str(problem.get("detail") or problem.get("title") or ""), *fields])
