"""bfloat16: what computes in it, what stays float32, and how far the numbers are from float32's."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from lesson import TEXT, learn, sampled
from tiny_model import CPU, finish, request, rows
from worker_process import QUICKSTART, TINY, WorkerProcess, datum, sample_body

from rolldeck_gpu_worker.base_models import BaseModel, BaseModels
from rolldeck_gpu_worker.checkpoints import CheckpointId, CheckpointStore
from rolldeck_gpu_worker.lora import LoraSpec
from rolldeck_gpu_worker.trainer import Trainer

ONE = CheckpointId("m", "weights", "one")
STATE = {"base_model": "tiny", "step": 0, "seed": 0, "model_id": "m"}
LLAMA = {"architectures": ["LlamaForCausalLM"], "model_type": "llama"}
KINDS = pytest.mark.parametrize("rank", [0, 4], ids=["all weights", "adapter"])
RUNNERS = pytest.mark.parametrize("changes", [{}, LLAMA], ids=["own pass", "transformers"])


def base(folder: Path, compute: torch.dtype = torch.bfloat16, **changes) -> BaseModel:
    config = json.loads((QUICKSTART / "config.json").read_text()) | TINY | changes
    (folder / "tiny").mkdir(exist_ok=True)
    (folder / "tiny" / "config.json").write_text(json.dumps(config))
    return BaseModels([folder], compute=compute).get("tiny")


def trainer(model: BaseModel, rank: int) -> Trainer:
    spec = LoraSpec(rank) if rank else None
    return Trainer(model.make_for(spec, 1, CPU, with_grad=True), 4096)


@RUNNERS
@KINDS
def test_the_loss_falls_and_what_is_trained_stays_float32(tmp_path, rank, changes):
    trained = trainer(base(tmp_path, **changes), rank)
    losses = learn(trained, 25)
    assert losses[-1] < 0.5 * losses[0]
    weights, optimiser = trained.weights, trained.optimiser
    buffers = (weights.trained_flat, weights.grad_flat, optimiser.mean, optimiser.square)
    assert {buffer.dtype for buffer in buffers} == {torch.float32}
    assert weights.snapshot().flat.dtype == torch.bfloat16
    # A master that is trained holds more than bfloat16 can.
    assert not torch.equal(weights.trained_flat, weights.trained_flat.bfloat16().float())


@KINDS
def test_a_resumed_model_goes_on_bit_for_bit(tmp_path, rank):
    model, store = base(tmp_path), CheckpointStore(tmp_path / "checkpoints")
    trained, other = trainer(model, rank), trainer(model, rank)
    learn(trained, 3)
    store.save(ONE, trained.weights, trained.optimiser, STATE)
    store.load(ONE, other.weights, other.optimiser)
    assert learn(trained, 2) == learn(other, 2)
    assert torch.equal(trained.weights.trained_flat, other.weights.trained_flat)


@RUNNERS
@KINDS
def test_what_was_sampled_is_what_is_trained_within_a_bound(tmp_path, rank, changes):
    """The gap that every update reports: above rounding of float32, and far below what a clip acts on."""
    gaps = {}
    for compute in (torch.float32, torch.bfloat16):
        trained = trainer(base(tmp_path, compute, **changes), rank)
        learn(trained, 8)
        data = sampled(trained)
        metrics = finish(trained.forward(request(data, "importance_sampling")))["metrics"]
        assert metrics["trained_tokens:sum"] == 24 * 24
        gaps[compute] = metrics["logprob_gap:max"]
    assert gaps[torch.float32] < 1e-4
    assert 1e-4 < gaps[torch.bfloat16] < 0.1


@KINDS
def test_gradients_point_where_float32s_do(tmp_path, rank):
    data, grads = rows([9, 20, 31]), []
    for compute in (torch.float32, torch.bfloat16):
        model = base(tmp_path, compute)
        trained = trainer(model, rank)
        with torch.no_grad():
            # Adapters start at a point where half of their gradient is zero.
            trained.weights.trained_flat.add_(torch.linspace(-0.02, 0.02, len(trained.weights.trained_flat)))
        finish(trained.forward_backward(request(data, entropy_coef=0.01)))
        grads.append(trained.weights.grad_flat.clone())
    assert float(torch.cosine_similarity(*grads, dim=0)) > 0.999


def test_a_checkpoint_of_float32_is_trained_on_in_bfloat16(tmp_path):
    """Checkpoints hold the float32 weights whatever computed."""
    store = CheckpointStore(tmp_path / "checkpoints")
    model = base(tmp_path, torch.float32)
    trained = trainer(model, 0)
    learn(trained, 2)
    store.save(ONE, trained.weights, trained.optimiser, STATE)
    other = trainer(replace(model, compute=torch.bfloat16), 0)
    store.load(ONE, other.weights, other.optimiser)
    assert torch.equal(other.weights.flat, trained.weights.flat)


def test_a_worker_says_what_it_computes_in(tmp_path, model_root):
    with WorkerProcess(tmp_path, model_root, "--dtype", "bfloat16") as worker, worker.client() as client:
        assert client.send("GET", "/ext/v1/info").json["dtype"] == "bfloat16"
        model = client.model(rank=2)
        session = model.serve()["sampling_session_id"]
        answer = client.post("/ext/v1/sample", sample_body(TEXT[:9], session)).json["sequences"][0]
        zeros = [0.0] * 8
        row = datum(
            [*TEXT[:9], *answer["tokens"]], logprobs=[*zeros, *answer["logprobs"]], advantages=[*zeros, *[1.0] * 8]
        )
        metrics = model.forward_backward([row], "importance_sampling")["metrics"]
        assert 0 < metrics["logprob_gap:max"] < 0.1
        # A stored checkpoint samples as what was saved did.
        path = model.call("save_weights_for_sampler", path="s")["path"]
        body = sample_body(TEXT[:9], "") | {"sampling_session_id": None, "model_path": path}
        assert client.post("/ext/v1/sample", body).json["sequences"][0] == answer


def test_a_cpu_worker_computes_in_float32_unless_told(tmp_path, model_root):
    with WorkerProcess(tmp_path, model_root) as worker, worker.client() as client:
        assert client.send("GET", "/ext/v1/info").json["dtype"] == "float32"
    with pytest.raises(RuntimeError, match="invalid choice: 'float16'"):
        WorkerProcess(tmp_path, model_root, "--dtype", "float16")
