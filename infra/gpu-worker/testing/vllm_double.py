"""A stand-in for the HTTP surface of vLLM 0.33.0 that a worker uses (vLLM needs a GPU). Its fields are those of that version's own
models: `GenerateRequest` and `SamplingParams` going in, where other keys are refused; `GenerateTokensResponse`, `GenerateLogProbs`
and `WeightVersionSpan` coming out; `WeightTransferUpdateRequest` of the `ipc` backend, whose handles here are the tensors' bytes.
It checks the order of a weight update, and samples with the weights it was given, so that a test sees which ones serve."""

from __future__ import annotations

import base64
import hashlib
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import torch

VERSION = "0.33.0"
_GENERATE = {"request_id", "token_ids", "sampling_params", "model", "stream", "cache_salt", "priority", "output_mode"}
_SAMPLING = {"n", "temperature", "top_p", "top_k", "min_p", "seed", "stop", "stop_token_ids", "ignore_eos", "max_tokens"}
_SAMPLING |= {"min_tokens", "logprobs", "prompt_logprobs", "detokenize", "skip_special_tokens", "presence_penalty"}
_UPDATE = {"names", "dtype_names", "shapes", "ipc_handles_pickled", "ipc_handles", "tensor_sizes"}


def share_bytes(tensors: list[torch.Tensor]) -> str:
    """In place of CUDA IPC handles: one digest's worth of bytes for each tensor."""
    parts = [base64.b64encode(tensor.float().numpy().tobytes()).decode() for tensor in tensors]
    return base64.b64encode(json.dumps(parts).encode()).decode()


class VllmDouble:
    """`told`: paths of the requests about weights, in order. `fails`: paths that are answered with 500."""

    def __init__(self, version: str = VERSION):
        self.version = version
        self.told: list[str] = []
        self.salts: list[str] = []
        self.fails: set[str] = set()
        self.in_flight = 0
        # Samples wait for it before they are answered.
        self.held = threading.Event()
        self.held.set()
        self._lock = threading.Lock()
        self._paused = self._updating = self._ready = False
        self._weights: dict[str, bytes] = {}
        self.dtypes: set[str] = set()
        self._served = "default"
        double = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                self._answer(double.get(self.path))

            def do_POST(self) -> None:
                length = int(self.headers.get("content-length", 0))
                self._answer(double.post(self.path, json.loads(self.rfile.read(length) or b"null")))

            def _answer(self, found: tuple[int, dict]) -> None:
                body = json.dumps(found[1]).encode()
                self.send_response(found[0])
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._http.server_port}"
        self._thread = threading.Thread(target=self._http.serve_forever, daemon=True)

    def __enter__(self) -> VllmDouble:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.held.set()
        self._http.shutdown()
        self._http.server_close()

    def get(self, path: str) -> tuple[int, dict]:
        return (200, {"version": self.version}) if path == "/version" else (404, {"detail": "Not Found"})

    def post(self, path: str, body: dict | None) -> tuple[int, dict]:
        if path == "/inference/v1/generate":
            return self._generate(body)
        with self._lock:
            self.told.append(path)
            if path in self.fails:
                return 500, {"error": {"message": "it broke", "type": "InternalServerError", "code": 500}}
            return self._weight_request(path, body)

    def _weight_request(self, path: str, body: dict | None) -> tuple[int, dict]:
        if path == "/init_weight_transfer_engine":
            assert body == {"init_info": {"packed": False}}
            self._ready = True
            return 200, {"message": "Weight transfer initialized"}
        assert self._ready
        if path == "/pause?mode=wait":
            assert self.in_flight == 0
            self._paused = True
            return 200, {"status": "paused"}
        if path == "/start_weight_update":
            assert self._paused
            self._updating = True
            return 200, {"message": "Weight update started"}
        if path == "/update_weights":
            assert self._updating
            self._take(body["update_info"])
            return 200, {"message": "Weights updated"}
        if path == "/finish_weight_update":
            assert self._updating
            self._updating, self._served = False, body["weight_version"]
            return 200, {"message": "Weight update finished"}
        if path == "/reset_prefix_cache":
            return 200, {"success": not self._updating}
        if path == "/resume":
            assert not self._updating
            self._paused = False
            return 200, {"status": "resumed"}
        return 404, {"detail": "Not Found"}

    def _take(self, update: dict) -> None:
        assert set(update) <= _UPDATE
        parts = json.loads(base64.b64decode(update["ipc_handles_pickled"]))
        for name, dtype, shape, part in zip(
            update["names"], update["dtype_names"], update["shapes"], parts, strict=True
        ):
            assert hasattr(torch, dtype)
            self.dtypes.add(dtype)
            raw = base64.b64decode(part)
            assert len(raw) == 4 * int(np.prod(shape))
            self._weights[name] = raw

    @property
    def digest(self) -> str:
        """Of all weights that it holds."""
        found = hashlib.sha256()
        for name in sorted(self._weights):
            found.update(name.encode() + self._weights[name])
        return found.hexdigest()

    def _generate(self, body: dict) -> tuple[int, dict]:
        params = body["sampling_params"]
        if not set(body) <= _GENERATE or not set(params) <= _SAMPLING or not body["token_ids"]:
            return 400, {"error": {"message": "unknown field", "type": "BadRequestError", "code": 400}}
        if self._paused:
            return 503, {"error": {"message": "paused", "type": "ServiceUnavailableError", "code": 503}}
        with self._lock:
            self.in_flight += 1
            self.salts.append(body["cache_salt"])
        served, digest = self._served, self.digest
        self.held.wait(30)
        seed = hashlib.sha256(f"{digest} {body['token_ids']} {params['seed']}".encode()).digest()
        tokens = [256 if byte > 250 else byte for byte in seed[: params["max_tokens"]]]
        ended = next((at for at, token in enumerate(tokens) if token in params["stop_token_ids"]), None)
        tokens = tokens if ended is None else tokens[: ended + 1]
        entries = [{"token_id": token, "logprob": -1 - token / 512, "rank": 1, "top_logprobs": []} for token in tokens]
        choice = {
            "index": 0,
            "finish_reason": "length" if ended is None else "stop",
            "stop_reason": None if ended is None else tokens[-1],
            "token_ids": tokens,
            "routed_experts": None,
            "sampling_mask": None,
            "weight_versions": [{"version": served, "start": 0, "end": len(tokens)}],
            "logprobs": {"content": entries},
        }
        with self._lock:
            self.in_flight -= 1
        return 200, {"request_id": "r", "model": "policy", "output_mode": "tokens", "choices": [choice], "usage": None}
