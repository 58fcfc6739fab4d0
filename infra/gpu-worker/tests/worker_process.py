"""Starts `python -m rolldeck_gpu_worker` and speaks its protocol over real HTTP."""

from __future__ import annotations

import http.client
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

ROOT = Path(__file__).resolve().parents[1]
QUICKSTART = ROOT.parent / "models" / "quickstart"
KEY = "tml-test-key-0123456789"
# Shape of the models that tests train: small, and with shared key heads.
TINY = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4}
TINY |= {"num_key_value_heads": 2, "head_dim": 8, "max_position_embeddings": 128, "max_window_layers": 2}


def make_model_root(folder: Path) -> Path:
    """A model root with `tiny` (tokenizer of the quickstart policy, no weights) and `foreign`, which can't be run."""
    tiny = folder / "tiny"
    shutil.copytree(QUICKSTART, tiny)
    config = json.loads((tiny / "config.json").read_text()) | TINY
    (tiny / "config.json").write_text(json.dumps(config))
    foreign = folder / "foreign"
    foreign.mkdir()
    (foreign / "config.json").write_text(json.dumps({**config, "architectures": ["GPT2LMHeadModel"]}))
    return folder


class Reply:
    def __init__(self, status: int, headers: dict[str, str], body: bytes):
        self.status, self.headers, self.body = status, headers, body

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Client:
    """One keep-alive connection."""

    def __init__(self, url: str, headers: dict[str, str] | None = None):
        self.host, self.port = urlsplit(url).hostname, urlsplit(url).port
        self.headers = {"X-API-Key": KEY, "Content-Type": "application/json", **(headers or {})}
        self.connection = http.client.HTTPConnection(self.host, self.port, timeout=60)

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.connection.close()

    def send(self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None) -> Reply:
        raw = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        self.connection.request(method, path, raw, self.headers | (headers or {}))
        response = self.connection.getresponse()
        return Reply(response.status, {k.lower(): v for k, v in response.getheaders()}, response.read())

    def post(self, path: str, body: Any, headers: dict[str, str] | None = None) -> Reply:
        return self.send("POST", path, body, headers)

    def api(self, name: str, body: Any, headers: dict[str, str] | None = None) -> Reply:
        return self.post(f"/api/v1/{name}", body, headers)

    def future(self, name: str, body: Any, headers: dict[str, str] | None = None) -> Any:
        """Sends a training request and waits for its result; an error is returned as its Reply."""
        reply = self.api(name, body, headers)
        assert reply.status == 200, reply.body
        return self.result(reply.json["request_id"])

    def result(self, request_id: str) -> Any:
        while True:
            reply = self.api("retrieve_future", {"request_id": request_id})
            if reply.status != 200:
                return reply
            if reply.json.get("type") != "try_again":
                return reply.json

    def session(self) -> str:
        return self.api("create_session", {"tags": [], "user_metadata": None, "sdk_version": "0.25.0"}).json[
            "session_id"
        ]

    def model(
        self, base: str = "tiny", seed: int = 1, headers: dict[str, str] | None = None, rank: int = 0, **lora: Any
    ) -> Model:
        body = {"session_id": self.session(), "model_seq_id": 0, "base_model": base}
        body["lora_config"] = {"rank": rank, "seed": seed, **lora}
        return Model(self, self.future("create_model", body, headers)["model_id"], headers)


class Model:
    """A model under training; counts its own seq_ids."""

    def __init__(self, client: Client, model_id: str, headers: dict[str, str] | None = None):
        self.client, self.id, self.headers, self.seq = client, model_id, headers, 0

    def body(self, **fields: Any) -> dict:
        self.seq += 1
        return {"model_id": self.id, "seq_id": self.seq, **fields}

    def call(self, name: str, **fields: Any) -> Any:
        return self.client.future(name, self.body(**fields), self.headers)

    def forward_backward(self, data: list, loss: str = "cross_entropy", config: dict | None = None) -> Any:
        return self.call("forward_backward", forward_backward_input=loss_input(data, loss, config))

    def optim_step(self, learning_rate: float = 1e-2, **fields: Any) -> Any:
        return self.call("optim_step", adam_params={"learning_rate": learning_rate, "eps": 1e-8}, **fields)

    def serve(self) -> dict:
        return self.call("save_weights_for_sampler", sampling_session_seq_id=self.seq)

    def state(self) -> dict:
        return self.client.send("GET", f"/ext/v1/models/{self.id}").json


def loss_input(data: list, loss: str = "cross_entropy", config: dict | None = None) -> dict:
    return {"data": data, "loss_fn": loss, "loss_fn_config": config}


def tensor(values: list, dtype: str = "float32") -> dict:
    return {"data": values, "dtype": dtype, "shape": [len(values)]}


def encoded(tokens: list[int]) -> dict:
    return {"chunks": [{"type": "encoded_text", "tokens": tokens}]}


def datum(sequence: list[int], **tensors: list) -> dict:
    """A shifted training row of a whole token sequence."""
    inputs = {"target_tokens": tensor(sequence[1:], "int64")}
    inputs |= {name: tensor(values) for name, values in tensors.items()}
    return {"model_input": encoded(sequence[:-1]), "loss_fn_inputs": inputs}


def sample_body(prompt: list[int], session: str, **params: Any) -> dict:
    return {
        "prompt": encoded(prompt),
        "num_samples": 1,
        "sampling_params": {"max_tokens": 8, "temperature": 1.0, "seed": 7, **params},
        "sampling_session_id": session,
    }


class WorkerProcess:
    """A worker process; `prelude` is Python run before it starts, for faults that only a process can have."""

    def __init__(
        self, data_dir: Path, model_root: Path, *flags: str, prelude: str = "", parent: list[str] | None = None
    ):
        self.data_dir = data_dir
        command = [sys.executable, "-c", f"{prelude}\nfrom rolldeck_gpu_worker.__main__ import main; main()"]
        command += ["--data-dir", str(data_dir), "--model-roots", str(model_root), *flags]
        environment = {**os.environ, "ROLLDECK_GPU_WORKER_KEY": KEY, "PYTHONPATH": f"{ROOT}:{Path(__file__).parent}"}
        self.process = subprocess.Popen(
            [*(parent or []), *command], cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(self.process.stderr.read().decode())
        ready = json.loads(line)
        self.url, self.boot_id = ready["url"], ready["boot_id"]

    def client(self, headers: dict[str, str] | None = None) -> Client:
        return Client(self.url, headers)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def terminate(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=60)

    def __enter__(self) -> WorkerProcess:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.kill()
        self.process.stdout.close()
        self.process.stderr.close()
