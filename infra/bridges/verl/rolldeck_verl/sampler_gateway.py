"""VeRL's engines as /v1/completions at an address that is known before they start: token ids in, token ids and logprobs
out. Requests go through VeRL's own client, so its balancing and its stickiness hold; nothing is tokenised.

A gateway that others can reach wants a key. It lives as long as the trainer's process."""

from __future__ import annotations

import asyncio
import hmac
import logging
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from aiohttp import web
from rolldeck_driven.errors import BridgeError

log = logging.getLogger(__name__)

_MAX_BODY_BYTES = 64 * 1024 * 1024
_START_S = 30.0
_LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})


@dataclass(frozen=True)
class ListenAddress:
    host: str
    port: int
    key: str | None


def listen_address(env: Mapping[str, str]) -> ListenAddress | None:
    """From ROLLDECK_SAMPLER_LISTEN and ROLLDECK_SAMPLER_KEY; None where the engines are reached another way.

    @raises BridgeError"""
    text = env.get("ROLLDECK_SAMPLER_LISTEN")
    if not text:
        return None
    host, _, port = text.rpartition(":")
    if not host or not port.isdigit() or not 0 < int(port) < 65536:
        raise BridgeError(f"ROLLDECK_SAMPLER_LISTEN: {text!r} is no <host>:<port>")
    key = env.get("ROLLDECK_SAMPLER_KEY") or None
    if key is None and host not in _LOOPBACK:
        raise BridgeError("ROLLDECK_SAMPLER_KEY: is needed where others than this machine can ask the engines")
    return ListenAddress(host.strip("[]"), int(port), key)


class SamplerGateway:
    """@param llm_client: VeRL's `LLMServerClient`
    @param model: name under which the model is listed"""

    def __init__(self, llm_client: Any, address: ListenAddress, model: str):
        self._client = llm_client
        self._address = address
        self._model = model
        self._runner: web.AppRunner | None = None
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="rolldeck-gateway", daemon=True)

    def start(self) -> None:
        """Answers from here on. @raises BridgeError when it can not listen there"""
        self._thread.start()
        try:
            asyncio.run_coroutine_threadsafe(self._listen(), self._loop).result(_START_S)
        except OSError as error:
            raise BridgeError(f"ROLLDECK_SAMPLER_LISTEN: {self._address.host}:{self._address.port}: {error}") from error

    def close(self) -> None:
        """Answers no more."""
        if self._runner is not None:
            asyncio.run_coroutine_threadsafe(self._runner.cleanup(), self._loop).result(_START_S)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(timeout=1.0)

    async def _listen(self) -> None:
        app = web.Application(client_max_size=_MAX_BODY_BYTES)
        app.router.add_get("/v1/models", self._models)
        app.router.add_post("/v1/completions", self._complete)
        # Whoever hangs up frees its place in the engine's queue.
        self._runner = web.AppRunner(app, handler_cancellation=True, access_log=None)
        await self._runner.setup()
        await web.TCPSite(self._runner, self._address.host, self._address.port).start()

    async def _models(self, request: web.Request) -> web.Response:
        return self._refusal(request) or web.json_response({"object": "list", "data": [{"id": self._model}]})

    async def _complete(self, request: web.Request) -> web.Response:
        refusal = self._refusal(request)
        if refusal is not None:
            return refusal
        try:
            prompt, sampling = _read(await request.json())
        except ValueError as error:
            return _error(400, str(error))
        key = request.headers.get("x-rolldeck-affinity") or uuid4().hex
        most, stops = sampling["max_tokens"], frozenset(sampling["stop_token_ids"])
        try:
            output = await self._client.generate(request_id=key, prompt_ids=prompt, sampling_params=sampling)
        except Exception as error:  # noqa: BLE001 - whatever an engine raises is told to who asked
            log.exception("VeRL's engine refused a sample")
            return _error(500, f"{type(error).__name__}: {error}")
        tokens = [int(token) for token in output.token_ids]
        if not tokens or output.stop_reason == "aborted":
            # The engines sleep, or weights are on their way: asked again, it is sampled whole.
            return _error(503, "the sample was aborted")
        finish = "stop" if len(tokens) < most or tokens[-1] in stops else "length"
        return web.json_response(_completion(self._model, prompt, tokens, output.log_probs, finish))

    def _refusal(self, request: web.Request) -> web.Response | None:
        key = self._address.key
        given = request.headers.get("authorization", "")
        if key is None or hmac.compare_digest(given.encode(), f"Bearer {key}".encode()):
            return None
        return _error(401, "the key is wrong: ROLLDECK_SAMPLER_KEY of the trainer")


def _read(body: Any) -> tuple[list[int], dict[str, Any]]:
    """Prompt ids and vLLM's sampling parameters. @raises ValueError that names the field"""
    if not isinstance(body, dict):
        raise ValueError("the body is no JSON object")
    prompt = body.get("prompt")
    if not isinstance(prompt, list) or not prompt or not all(type(token) is int and token >= 0 for token in prompt):
        raise ValueError("prompt: give token ids")
    if body.get("stream"):
        raise ValueError("stream: whole answers only; choose false")
    most, stops = body.get("max_tokens"), body.get("stop_token_ids") or []
    if type(most) is not int or most < 1:
        raise ValueError("max_tokens: give a whole number from 1")
    if not isinstance(stops, list) or not all(type(token) is int for token in stops):
        raise ValueError("stop_token_ids: give token ids")
    sampling = {"max_tokens": most, "stop_token_ids": stops, "logprobs": True, "repetition_penalty": 1.0}
    for name, default in (("temperature", 1.0), ("top_p", 1.0), ("top_k", -1), ("seed", None)):
        value = body.get(name, default)
        if value is not None and (isinstance(value, bool) or not isinstance(value, (int, float))):
            raise ValueError(f"{name}: give a number")
        sampling[name] = default if value is None else value
    return prompt, sampling


def _completion(model: str, prompt: list[int], tokens: list[int], logprobs: Any, finish: str) -> dict[str, Any]:
    known = None if logprobs is None else {"token_logprobs": [float(value) for value in logprobs]}
    choice = {"index": 0, "text": "", "token_ids": tokens, "logprobs": known, "finish_reason": finish}
    counts = {"prompt_tokens": len(prompt), "completion_tokens": len(tokens)}
    return {"object": "text_completion", "model": model, "choices": [choice], "usage": counts}


def _error(status: int, message: str) -> web.Response:
    return web.json_response({"error": {"message": message, "code": status}}, status=status)
