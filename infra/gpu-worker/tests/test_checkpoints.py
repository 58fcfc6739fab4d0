"""Checkpoints are whole or absent after a crash, and a killed worker's step can be replayed."""

from __future__ import annotations

import io
import json
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import time
from pathlib import Path

import pytest
import torch
from lesson import TEXT
from safetensors.torch import load, load_file
from tiny_model import tiny_trainer
from worker_process import ROOT, WorkerProcess, datum

from rolldeck_gpu_worker.checkpoints import CheckpointId, CheckpointStore
from rolldeck_gpu_worker.errors import WorkerError

STATE = {"base_model": "tiny", "step": 3, "seed": 0, "model_id": "m"}
ONE = CheckpointId("m", "weights", "one")

CRASH = """
import os, signal, sys, torch
sys.path[:0] = [{root!r}, {tests!r}]
from pathlib import Path
from tiny_model import tiny_trainer
from rolldeck_gpu_worker import checkpoints, durable
from rolldeck_gpu_worker.checkpoints import CheckpointId, CheckpointStore
def die(*_, **__): os.kill(os.getpid(), signal.SIGKILL)
{fault}
trainer = tiny_trainer(seed=1)
id = CheckpointId("m", "weights", "one")
CheckpointStore(Path({folder!r})).save(id, trainer.weights, trainer.optimiser, {state!r})
"""


def save_and_crash(folder: Path, fault: str) -> None:
    code = CRASH.format(root=str(ROOT), tests=str(Path(__file__).parent), fault=fault, folder=str(folder), state=STATE)
    assert subprocess.run([sys.executable, "-c", code], capture_output=True).returncode == -signal.SIGKILL


def save(folder: Path, seed: int = 1) -> CheckpointStore:
    store = CheckpointStore(folder)
    trainer = tiny_trainer(seed=seed)
    store.save(ONE, trainer.weights, trainer.optimiser, STATE)
    return store


@pytest.mark.parametrize(
    "fault",
    [
        "checkpoints.os.rename = die",
        "checkpoints.write_durably = die",
        "durable.os.replace = die",
        "checkpoints.fsync_folder = die",
    ],
    ids=["between temp and rename", "between rename and COMPLETE", "inside COMPLETE", "before the folder is synced"],
)
def test_a_crash_leaves_no_half_checkpoint(tmp_path, fault):
    save_and_crash(tmp_path, fault)
    store = CheckpointStore(tmp_path)
    assert (store.find(ONE), store.of_model("m")) == (None, [])
    with pytest.raises(WorkerError) as caught:
        store.load(ONE, tiny_trainer().weights, None)
    assert caught.value.code == "unknown_model"
    # Nothing of the crash stands in the way of saving again, and nothing hidden is left.
    save(tmp_path)
    assert CheckpointStore(tmp_path).verified(ONE).state["step"] == 3
    assert [f.name for f in (tmp_path / "m" / "weights").iterdir()] == ["one"]


def test_a_round_trip_keeps_weights_optimiser_and_step(tmp_path):
    store = CheckpointStore(tmp_path)
    trainer, other = tiny_trainer(seed=1), tiny_trainer(seed=2)
    trainer.optimiser.mean.normal_()
    trainer.optimiser.square.uniform_()
    trainer.optimiser.updates = 3
    store.save(ONE, trainer.weights, trainer.optimiser, STATE)
    assert store.load(ONE, other.weights, other.optimiser)["step"] == 3
    assert torch.equal(other.weights.flat, trainer.weights.flat)
    assert torch.equal(other.optimiser.mean, trainer.optimiser.mean)
    assert torch.equal(other.optimiser.square, trainer.optimiser.square)
    assert other.optimiser.updates == 3


def test_another_workers_checkpoints_are_read_and_never_changed(tmp_path):
    save(tmp_path / "theirs")
    store = CheckpointStore(tmp_path / "own", others=[tmp_path / "theirs"])
    trainer = tiny_trainer(seed=2)
    assert store.load(ONE, trainer.weights, None)["step"] == 3
    # Here they are not: neither listed nor deleted, and their names are free.
    assert (store.find(ONE), store.of_model("m"), store.model_ids()) == (None, [], [])
    with pytest.raises(WorkerError) as caught:
        store.delete(ONE)
    assert caught.value.code == "unknown_model"
    assert CheckpointStore(tmp_path / "theirs").verified(ONE).state["step"] == 3
    # What this worker saves goes first.
    store.save(ONE, trainer.weights, trainer.optimiser, {**STATE, "step": 4})
    assert store.verified(ONE).state["step"] == 4


def test_a_damaged_file_is_found(tmp_path):
    store = save(tmp_path)
    file = store.folder(ONE) / "model.safetensors"
    raw = bytearray(file.read_bytes())
    raw[-1] ^= 1
    file.write_bytes(raw)
    with pytest.raises(WorkerError) as caught:
        store.load(ONE, tiny_trainer().weights, None)
    assert caught.value.code == "conflict"


def test_a_torn_folder_is_ignored(tmp_path):
    store = save(tmp_path)
    shutil.copytree(store.folder(ONE), tmp_path / "m" / "weights" / "torn")
    (tmp_path / "m" / "weights" / "torn" / "COMPLETE").unlink()
    assert [c.id.name for c in store.of_model("m")] == ["one"]
    assert store.find(CheckpointId("m", "weights", "torn")) is None
    (tmp_path / "m" / "weights" / "torn" / "COMPLETE").write_text("{")
    assert store.find(CheckpointId("m", "weights", "torn")) is None


def test_only_safetensors_and_json_are_written(tmp_path):
    folder = save(tmp_path).folder(ONE)
    assert sorted(f.name for f in folder.iterdir()) == [
        "COMPLETE",
        "model.safetensors",
        "optimizer.safetensors",
        "state.json",
    ]
    manifest = json.loads((folder / "COMPLETE").read_text())
    assert manifest["files"].keys() == {"model.safetensors", "optimizer.safetensors", "state.json"}


def test_a_worker_killed_before_its_step_replays_to_the_same_weights(tmp_path, model_root):
    """Steps 1–3 with a checkpoint at 1; killed between forward_backward and optim_step of step 3."""
    data = [[datum(TEXT[: 8 + step]), datum(TEXT)] for step in range(3)]
    with WorkerProcess(tmp_path / "a", model_root) as process, process.client() as client:
        model = client.model(seed=5)
        _steps(model, data[:1])
        path = model.call("save_weights", path="step-1")["path"]
        _steps(model, data[1:2])
        model.forward_backward(data[2])
        process.kill()
    with WorkerProcess(tmp_path / "a", model_root) as process, process.client() as client:
        assert (
            client.api("optim_step", {"model_id": model.id, "seq_id": 7, "adam_params": {}}).json["code"]
            == "unknown_model"
        )
        again = client.model(seed=6)
        assert again.call("load_weights", path=path, optimizer=True)["step"] == 1
        _steps(again, data[1:])
        replayed = _weights(tmp_path / "a", again)
    with WorkerProcess(tmp_path / "b", model_root) as process, process.client() as client:
        straight = client.model(seed=5)
        _steps(straight, data)
        expected = _weights(tmp_path / "b", straight)
    for name, tensor in expected.items():
        assert torch.allclose(replayed[name], tensor, rtol=0, atol=1e-6), name


def _steps(model, steps: list) -> None:
    for data in steps:
        model.forward_backward(data)
        model.optim_step(expect_step=model.state()["step"])


def _weights(data_dir: Path, model) -> dict[str, torch.Tensor]:
    model.call("save_weights", path="final")
    return load_file(data_dir / "checkpoints" / model.id / "weights" / "final" / "model.safetensors")


def test_the_export_loads_in_transformers_with_equal_logits(tmp_path, model_root):
    transformers = pytest.importorskip("transformers")
    with WorkerProcess(tmp_path / "data", model_root) as process, process.client() as client:
        model = client.model()
        _steps(model, [[datum(TEXT)]] * 3)
        model.call("save_weights", path="done")
        tar = client.send("GET", f"/ext/v1/checkpoints/{model.id}/weights/done/export?format=hf").body
        ours = model.call("forward", forward_input={"data": [datum(TEXT)], "loss_fn": "cross_entropy"})
    with tarfile.open(fileobj=io.BytesIO(tar)) as archive:
        archive.extractall(tmp_path / "hf", filter="data")
    theirs = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "hf")
    assert type(theirs).__name__ == "Qwen3ForCausalLM"
    with torch.no_grad():
        logs = torch.log_softmax(theirs(torch.tensor([TEXT[:-1]])).logits[0].float(), dim=-1)
    expected = logs.gather(1, torch.tensor(TEXT[1:])[:, None]).squeeze(1).tolist()
    assert ours["loss_fn_outputs"][0]["logprobs"]["data"] == pytest.approx(expected, abs=1e-5)
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "hf")
    assert tokenizer.encode('<|user|>find a<|end|><|assistant|>[get(k="a")]<|end|>') == TEXT
    chat = [{"role": "user", "content": "find a"}]
    assert (
        tokenizer.apply_chat_template(chat, add_generation_prompt=True, tokenize=False)
        == "<|user|>find a<|end|><|assistant|>"
    )


def test_a_damaged_checkpoint_is_told_and_never_exported(tmp_path, model_root):
    with WorkerProcess(tmp_path / "data", model_root) as process, process.client() as client:
        model = client.model()
        _steps(model, [[datum(TEXT)]])
        model.call("save_weights", path="done")
        place = f"/ext/v1/checkpoints/{model.id}/weights/done"
        whole = client.send("GET", f"{place}/verify").json
        assert (whole["path"], whole["step"]) == (f"tinker://{model.id}/weights/done", 1)
        file = tmp_path / "data" / "checkpoints" / model.id / "weights" / "done" / "model.safetensors"
        assert whole["bytes"] > file.stat().st_size
        damaged = bytearray(file.read_bytes())
        damaged[-1] ^= 1
        file.write_bytes(damaged)
        for what in ("verify", "export"):
            reply = client.send("GET", f"{place}/{what}")
            assert (reply.status, reply.json["code"]) == (409, "conflict")
            assert "model.safetensors" in reply.json["detail"]
        missing = client.send("GET", f"/ext/v1/checkpoints/{model.id}/weights/never/verify")
        assert (missing.status, missing.json["code"]) == (404, "unknown_model")


def test_a_folder_with_weights_is_where_training_starts(tmp_path, model_root):
    root = tmp_path / "models"
    shutil.copytree(model_root / "tiny", root / "started")
    with WorkerProcess(tmp_path / "a", model_root) as process, process.client() as client:
        model = client.model()
        _steps(model, [[datum(TEXT)]] * 2)
        weights = _weights(tmp_path / "a", model)
        tar = client.send("GET", f"/ext/v1/checkpoints/{model.id}/weights/final/export").body
    with tarfile.open(fileobj=io.BytesIO(tar)) as archive:
        (root / "started" / "model.safetensors").write_bytes(archive.extractfile("model.safetensors").read())
    with WorkerProcess(tmp_path / "b", root) as process, process.client() as client:
        _ = client.model("started").call("save_weights", path="start")
        started = next((tmp_path / "b" / "checkpoints").glob("*/weights/start/model.safetensors"))
    loaded = load(started.read_bytes())
    assert all(torch.equal(loaded[name], tensor) for name, tensor in weights.items())


def test_sigterm_saves_what_was_trained_and_ends_cleanly(tmp_path, model_root):
    with WorkerProcess(tmp_path, model_root) as process, process.client() as client:
        model, untouched = client.model(), client.model()
        _steps(model, [[datum(TEXT)]] * 2)
        assert process.terminate() == 0
    store = CheckpointStore(tmp_path / "checkpoints")
    saved = store.of_model(model.id)
    assert [(c.id.name.startswith("shutdown-2-"), c.state["step"]) for c in saved] == [(True, 2)]
    assert [e["kind"] for e in saved[0].state["journal_tail"]] == ["forward_backward", "optim_step"] * 2
    assert store.of_model(untouched.id) == []


def test_shutdown_by_request(tmp_path, model_root):
    with WorkerProcess(tmp_path, model_root) as process, process.client() as client:
        assert client.post("/ext/v1/shutdown", {}).status == 200
        assert process.process.wait(timeout=60) == 0


def test_the_worker_ends_when_its_parent_dies(tmp_path, model_root):
    """A supervisor process starts the worker and is killed."""
    supervisor = """
import subprocess, sys, time
print(subprocess.Popen(sys.argv[1:]).pid, file=sys.stderr, flush=True)
time.sleep(600)"""
    with WorkerProcess(tmp_path, model_root, parent=[sys.executable, "-c", supervisor]) as process:
        worker = int(process.process.stderr.readline())
        process.process.kill()
        process.process.wait()
        deadline = time.monotonic() + 30
        while _runs(worker):
            assert time.monotonic() < deadline
            time.sleep(0.1)


def _runs(pid: int) -> bool:
    """Zombies whose new parent has not fetched them yet have ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def test_a_worker_without_a_proper_key_does_not_start(tmp_path, model_root):
    for key in ("", "secret-0123456789", "tml-x"):
        environment = {**os.environ, "ROLLDECK_GPU_WORKER_KEY": key}
        command = [
            sys.executable,
            "-m",
            "rolldeck_gpu_worker",
            "--data-dir",
            str(tmp_path),
            "--model-roots",
            str(model_root),
        ]
        ended = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, timeout=60)
        assert ended.returncode == 2 and b"ROLLDECK_GPU_WORKER_KEY" in ended.stderr
