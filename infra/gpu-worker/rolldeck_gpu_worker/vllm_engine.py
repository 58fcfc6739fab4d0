"""Sampling by a vLLM server beside the worker, on the same GPU. EXPERIMENTAL: it has never run against vLLM itself, only against a
double of its HTTP surface. Written for vLLM 0.33.0 alone; a server that says another version is refused.

The worker trains as ever; what serves is handed over by CUDA IPC when it is committed. Invariants: a sample is of one set of weights,
because a hand-over waits for those in flight and holds up those that come; a commit that failed half way leaves a server that answers
nobody until one succeeds; prefixes are keyed by the weights. vLLM's hand-over is a pickle that it has to be told to accept
(VLLM_ALLOW_INSECURE_SERIALIZATION), so it is spoken to on loopback only; nothing that it sends is ever unpickled."""

from __future__ import annotations

import base64
import http.client
import ipaddress
import json
import logging
import pickle
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import urlsplit

import torch

from .batch import BatchLimits
from .engine import Engine, EngineLoad, EngineTask, SampleJob
from .errors import WorkerError, bad_input
from .snapshots import Snapshot

log = logging.getLogger(__name__)

VERSION = "0.33.0"
# Weights of one request to vLLM, bytes: bounds what is held by both at once.
_UPDATE_BYTES = 1 << 30
_ANSWER_WITHIN_S = 3600.0

# Handles of tensors, as vLLM's `ipc_handles_pickled` wants them.
Share = Callable[[list[torch.Tensor]], str]


def share_by_ipc(tensors: list[torch.Tensor]) -> str:
    """CUDA IPC handles by the GPU's UUID, pickled: for one process of the same GPU to read while the tensors live."""
    from torch.multiprocessing.reductions import reduce_tensor

    handles = []
    for tensor in tensors:
        _, arguments = reduce_tensor(tensor)
        handles.append({str(torch.cuda.get_device_properties(tensor.device).uuid): arguments})
    return base64.b64encode(pickle.dumps(handles)).decode()


class VllmServer:
    """Its requests, as vLLM 0.33.0 names them. One connection per thread."""

    def __init__(self, url: str, key: str | None = None):
        parts = urlsplit(url)
        if parts.scheme != "http" or parts.hostname is None or parts.port is None or parts.path not in ("", "/"):
            raise ValueError(f"{url}: http://127.0.0.1:<port> is needed")
        if not (parts.hostname == "localhost" or _is_loopback(parts.hostname)):
            raise ValueError(f"{url}: only a loopback address is spoken to: vLLM's weight endpoints ask for no key")
        self._host, self._port = parts.hostname, parts.port
        self._headers = {"Content-Type": "application/json"}
        if key:
            self._headers["Authorization"] = f"Bearer {key}"
        self._own = threading.local()

    def call(self, method: str, path: str, body: dict | None = None) -> dict:
        """@raises WorkerError busy where it does not answer, internal where it refuses"""
        raw = None if body is None else json.dumps(body).encode()
        try:
            connection = self._connection()
            connection.request(method, path, raw, self._headers)
            answer = connection.getresponse()
            status, content = answer.status, answer.read()
        except (OSError, http.client.HTTPException) as error:
            self._own.connection = None
            raise WorkerError("busy", f"vLLM does not answer {path}: {error}", status=503, retry_after_s=5) from error
        try:
            parsed = json.loads(content or b"{}")
        except ValueError as error:
            raise WorkerError("internal", f"vLLM answered {path} with something else than JSON") from error
        if status != 200 or not isinstance(parsed, dict):
            raise WorkerError("internal", f"vLLM refused {path}: {status} {str(parsed)[:300]}")
        return parsed

    def _connection(self) -> http.client.HTTPConnection:
        if getattr(self._own, "connection", None) is None:
            self._own.connection = http.client.HTTPConnection(self._host, self._port, timeout=_ANSWER_WITHIN_S)
        return self._own.connection


class VllmEngine(Engine):
    """@param share: how tensors are handed over"""

    def __init__(
        self,
        device: torch.device,
        limits: BatchLimits,
        prefix_bytes: int,
        server: VllmServer,
        share: Share = share_by_ipc,
    ):
        super().__init__(device, limits, prefix_bytes)
        self._server, self._share = server, share
        self._pool = ThreadPoolExecutor(limits.rows, thread_name_prefix="vllm")
        self._served: int | None = None
        self._in_flight = 0
        self._changed = threading.Condition()

    def start(self) -> None:
        """@raises WorkerError for a server that is not there or of another version"""
        version = self._server.call("GET", "/version").get("version")
        if version != VERSION:
            raise WorkerError("bad_input", f"vLLM {VERSION} is needed, the server says {version}", "--vllm-url")
        self._server.call("POST", "/init_weight_transfer_engine", {"init_info": {"packed": False}})
        super().start()

    def stop(self, timeout_s: float) -> None:
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
        super().stop(timeout_s)
        self._pool.shutdown(wait=False, cancel_futures=True)

    @property
    def phase(self) -> str:
        return "train" if self._tasks else "sample" if self._in_flight else "idle"

    @property
    def active_sequences(self) -> int:
        return self._in_flight

    def load(self) -> EngineLoad:
        """As many as are asked for: vLLM's own queue is its own."""
        rows = self._limits.rows
        return EngineLoad(min(self._in_flight, rows), max(0, self._in_flight - rows), min(1.0, self._in_flight / rows))

    def submit(self, job: SampleJob) -> None:
        refuse(job)
        self._post(lambda: self._route(job))

    def commit(self, snapshot: Snapshot) -> None:
        """Engine thread: the snapshot serves when this returns. @raises WorkerError; nothing serves then"""
        if self._served == snapshot.uid:
            return
        self._served = None
        with self._changed:
            self._changed.wait_for(lambda: self._in_flight == 0 or self._stopping)
        if self._stopping:
            raise WorkerError("cancelled", "the worker is shutting down")
        call = self._server.call
        call("POST", "/pause?mode=wait")
        call("POST", "/start_weight_update")
        for names, tensors in in_parts(snapshot.weights.hf_views()):
            update = {
                "names": names,
                "dtype_names": [str(tensor.dtype).removeprefix("torch.") for tensor in tensors],
                "shapes": [list(tensor.shape) for tensor in tensors],
                "ipc_handles_pickled": self._share(tensors),
            }
            call("POST", "/update_weights", {"update_info": update})
        call("POST", "/finish_weight_update", {"weight_version": str(snapshot.uid)})
        if call("POST", "/reset_prefix_cache").get("success") is not True:
            raise WorkerError("internal", "vLLM keeps prefixes of the weights before, /reset_prefix_cache failed")
        call("POST", "/resume")
        self._served = snapshot.uid

    def _route(self, job: SampleJob) -> None:
        """Engine thread, between slices of training. Other weights than those that serve take their turn among the tasks."""
        if self._served == job.snapshot.uid:
            self._send(job)
        else:
            self._tasks.append(
                EngineTask("hand over weights", lambda: self._hand_over(job), lambda _, e: e and job.on_end(None, e))
            )

    def _hand_over(self, job: SampleJob) -> Iterator[None]:
        if not job.cancelled:
            self.commit(job.snapshot)
            self._send(job)
        yield

    def _send(self, job: SampleJob) -> None:
        if not job.cancelled:
            with self._changed:
                self._in_flight += 1
            self._pool.submit(self._finish, job)

    def _finish(self, job: SampleJob) -> None:
        """On a thread of the pool: one request for each sequence, one after the other."""
        result, error = None, None
        try:
            sequences = [self._sequence(job, sample) for sample in range(job.num_samples) if not job.cancelled]
            version, hits = job.snapshot.version, 0
            result = {"sequences": sequences, "weight_version": version, "prompt_cache_hit_tokens": hits}
        except Exception as cause:
            error = cause if isinstance(cause, WorkerError) else WorkerError("internal", f"vLLM: {cause}"[:500])
        finally:
            with self._changed:
                self._in_flight -= 1
                self._changed.notify_all()
        if not job.cancelled:
            job.on_end(None if error is not None else result, error)

    def _sequence(self, job: SampleJob, sample: int) -> dict:
        answer = self._server.call("POST", "/inference/v1/generate", generate_body(job, sample))
        sequence = read_choice(answer, str(job.snapshot.uid))
        with self._changed:
            self.counters.sampled_tokens += len(sequence["tokens"])
            self.counters.prompt_tokens += len(job.prompt)
            self.counters.sequences_ended += 1
        return sequence


def refuse(job: SampleJob) -> None:
    """@raises WorkerError bad_input for what vLLM would report other log-probabilities for, or has no words for"""
    params = job.params
    asked = {
        "sampling_params.top_p": params.top_p < 1,
        "sampling_params.top_k": params.top_k > 0,
        "sampling_params.temperature": params.temperature == 0,
        "sampling_params.stop": bool(params.stop_strings),
        "prompt_logprobs": job.prompt_logprobs or job.top_prompt_logprobs > 0,
    }
    for field, is_asked in asked.items():
        if is_asked:
            raise bad_input("the engine vllm does not do this: use the engine torch", field)


def generate_body(job: SampleJob, sample: int) -> dict:
    """A `GenerateRequest`. Seeds differ by sample; a prefix of other weights is never found."""
    params = job.params
    return {
        "token_ids": job.prompt.tolist(),
        "cache_salt": f"weights-{job.snapshot.uid}",
        "sampling_params": {
            "n": 1,
            "max_tokens": params.max_tokens,
            "temperature": params.temperature,
            "seed": (params.seed + sample * 0x9E3779B1) % (1 << 63),
            "stop_token_ids": sorted(params.stop_tokens),
            "ignore_eos": True,
            "logprobs": 0,
            "detokenize": False,
        },
    }


def read_choice(answer: dict, version: str) -> dict[str, Any]:
    """The one choice of a `GenerateTokensResponse`. @raises WorkerError internal for one that can't be trained on"""
    try:
        (choice,) = answer["choices"]
        tokens = [int(token) for token in choice["token_ids"]]
        content = choice["logprobs"]["content"]
        logprobs = [round(float(entry["logprob"]), 7) for entry in content]
        named = [int(entry["token_id"]) for entry in content]
        spans = choice["weight_versions"]
    except (KeyError, TypeError, ValueError) as error:
        raise WorkerError("internal", f"vLLM's answer lacks {type(error).__name__} {error}"[:300]) from error
    if named != tokens or not tokens:
        raise WorkerError("internal", "vLLM's log-probabilities are not of the tokens that it sampled")
    if not spans or any(span["version"] != version for span in spans):
        raise WorkerError("internal", f"vLLM sampled with weights {spans}, not {version}")
    if choice.get("finish_reason") not in ("stop", "length"):
        raise WorkerError("internal", f"vLLM ended a sample with {choice.get('finish_reason')}")
    return {"stop_reason": choice["finish_reason"], "tokens": tokens, "logprobs": logprobs}


def in_parts(views: dict[str, torch.Tensor]) -> Iterator[tuple[list[str], list[torch.Tensor]]]:
    """Names and tensors by Hugging Face name, some at a time."""
    names, tensors, held = [], [], 0
    for name, view in views.items():
        size = view.numel() * view.element_size()
        if names and held + size > _UPDATE_BYTES:
            yield names, tensors
            names, tensors, held = [], [], 0
        names.append(name)
        tensors.append(view.contiguous())
        held += size
    if names:
        yield names, tensors


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
