"""AdamW with moments of half the memory: how far it is from float32 ones, what it refuses, and what it says of its size."""

from __future__ import annotations

import pytest
import torch
from lesson import TEXT, learn
from tiny_model import tiny_weights
from worker_process import WorkerProcess, datum

from rolldeck_gpu_worker import adamw
from rolldeck_gpu_worker.adamw import AdamParams, AdamW
from rolldeck_gpu_worker.checkpoints import CheckpointId, CheckpointStore
from rolldeck_gpu_worker.trainer import Trainer

STATE = {"base_model": "tiny", "step": 0, "seed": 0, "model_id": "m"}
ONE = CheckpointId("m", "weights", "one")
PARAMS = AdamParams(learning_rate=1e-2, eps=1e-8, weight_decay=0.01, grad_clip_norm=1.0)


def trainer(moments: torch.dtype) -> Trainer:
    return Trainer(tiny_weights(1, with_grad=True), 4096, moments)


def test_moments_of_half_the_memory_learn_as_float32_ones_do():
    exact, short = trainer(torch.float32), trainer(torch.bfloat16)
    ours, theirs = learn(short, 30, PARAMS), learn(exact, 30, PARAMS)
    assert ours[-1] < 0.2 * ours[0]
    assert ours[-1] == pytest.approx(theirs[-1], rel=0.2)
    # They are other numbers: half of the memory, and not the same path.
    assert ours != theirs
    parameters = short.weights.flat.numel()
    assert (short.optimiser.state_bytes, exact.optimiser.state_bytes) == (4 * parameters, 8 * parameters)
    assert short.weights.flat.dtype == torch.float32


def test_they_are_resumed_as_they_were(tmp_path):
    store = CheckpointStore(tmp_path)
    trained, other = trainer(torch.bfloat16), trainer(torch.bfloat16)
    learn(trained, 3, PARAMS)
    saved = store.save(ONE, trained.weights, trained.optimiser, STATE)
    assert saved.manifest["files"]["optimizer.safetensors"]["bytes"] < 5 * trained.weights.flat.numel() + 10_000
    store.load(ONE, other.weights, other.optimiser)
    assert learn(trained, 2, PARAMS) == learn(other, 2, PARAMS)


@pytest.mark.parametrize(("stored", "loaded"), [("float32", "bfloat16"), ("bfloat16", "float32")])
def test_a_state_of_the_other_type_is_loaded(tmp_path, stored, loaded):
    store = CheckpointStore(tmp_path)
    trained, other = trainer(getattr(torch, stored)), trainer(getattr(torch, loaded))
    learn(trained, 3, PARAMS)
    store.save(ONE, trained.weights, trained.optimiser, STATE)
    store.load(ONE, other.weights, other.optimiser)
    assert (other.optimiser.mean.dtype, other.optimiser.updates) == (getattr(torch, loaded), 3)
    torch.testing.assert_close(other.optimiser.square.float(), trained.optimiser.square.float(), rtol=2**-7, atol=0)


@pytest.mark.parametrize("moments", [torch.float32, torch.bfloat16], ids=["float32", "bfloat16"])
def test_a_part_at_a_time_is_the_whole(monkeypatch, moments):
    generator = torch.Generator().manual_seed(2)
    start, grads = torch.randn(1000, generator=generator), torch.randn(3, 1000, generator=generator)
    whole, parts = start.clone(), start.clone()
    one, other = AdamW(whole, moments), AdamW(parts, moments)
    for grad in grads:
        monkeypatch.setattr(adamw, "_CHUNK", 1 << 24)
        one.step(whole, grad, PARAMS)
        monkeypatch.setattr(adamw, "_CHUNK", 96)
        other.step(parts, grad, PARAMS)
    torch.testing.assert_close(parts, whole, rtol=1e-6, atol=1e-7)


def test_a_worker_says_what_its_optimizer_keeps(tmp_path, model_root):
    with WorkerProcess(tmp_path, model_root, "--optimizer-moments", "bfloat16") as worker, worker.client() as client:
        info = client.send("GET", "/ext/v1/info").json
        assert info["optimizer"] == {"name": "adamw", "moments": "bfloat16"}
        model = client.model()
        model.forward_backward([datum(TEXT)])
        parameters = next(base["parameters"] for base in info["base_models"] if base["name"] == "tiny")
        assert model.state()["optimizer_state_bytes"] == 4 * parameters
        body = model.body(adam_params={"beta2": 0.999})
        refused = client.api("optim_step", body)
        assert (refused.status, refused.json["field"]) == (422, "adam_params.beta2")
        assert "at most 0.99" in refused.json["detail"]
        # Refused input uses no number.
        assert client.future("optim_step", {**body, "adam_params": {"beta2": 0.99}})["step"] == 1
