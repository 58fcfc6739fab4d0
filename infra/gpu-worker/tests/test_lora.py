"""Adapters over frozen weights: the numbers, and what the protocol promises of them."""

from __future__ import annotations

import io
import json
import tarfile

import numpy as np
import pytest
import torch
from lesson import TEXT, loss_of, train
from safetensors.torch import load
from tiny_model import CPU, finish, request, rows, tiny_config, tiny_weights
from worker_process import WorkerProcess, datum, sample_body

from rolldeck_gpu_worker.adamw import AdamParams
from rolldeck_gpu_worker.lora import LoraAdapter, LoraSpec
from rolldeck_gpu_worker.packing import pack
from rolldeck_gpu_worker.trainer import Trainer
from rolldeck_gpu_worker.weights import Weights, lora_modules

PARTS = [
    {},
    {"train_attn": False},
    {"train_mlp": False},
    {"train_unembed": False},
    {"train_attn": False, "train_mlp": False},
]


def adapted(spec: LoraSpec, seed: int = 0, b_scale: float = 0.0, **changes) -> Weights:
    """Tiny frozen weights under an adapter; `b_scale` fills B, so that the adapter does something."""
    base = tiny_weights(**changes)
    adapter = LoraAdapter(spec, lora_modules(base.config, spec), CPU, with_grad=True)
    adapter.initialise(seed)
    generator = torch.Generator().manual_seed(5)
    with torch.no_grad():
        for low_rank in adapter.low_ranks.values():
            low_rank.b.add_(torch.randn(low_rank.b.shape, generator=generator) * b_scale)
    return Weights(base.config, base.flat, adapter=adapter)


def logprobs(weights: Weights, data: list) -> list:
    result = finish(Trainer(weights, 4096).forward(request(data)))
    return [output["logprobs"]["data"] for output in result["loss_fn_outputs"]]


def test_a_fresh_adapter_changes_nothing():
    data = rows([9, 20])
    plain = logprobs(tiny_weights(), data)
    for ours, theirs in zip(logprobs(adapted(LoraSpec(4)), data), plain, strict=True):
        assert ours == pytest.approx(theirs, abs=1e-6)


@pytest.mark.parametrize("tied", [True, False], ids=["tied", "untied"])
@pytest.mark.parametrize("parts", PARTS, ids=str)
def test_merged_weights_compute_what_the_adapter_does(parts, tied):
    weights = adapted(LoraSpec(3, **parts), b_scale=0.05, tie_word_embeddings=tied)
    data = rows([9, 20, 31])
    merged, plain = logprobs(weights.snapshot(), data), logprobs(tiny_weights(tie_word_embeddings=tied), data)
    for ours, theirs, before in zip(logprobs(weights, data), merged, plain, strict=True):
        assert ours == pytest.approx(theirs, abs=2e-5)
        assert np.abs(np.subtract(ours, before)).max() > 1e-2


@pytest.mark.parametrize("loss", ["cross_entropy", "ppo"])
@pytest.mark.parametrize("parts", PARTS, ids=str)
def test_an_adapters_gradient_is_that_of_the_merged_weights(parts, loss):
    """dL/dA = s·Bᵀ dL/dW and dL/dB = s·dL/dW Aᵀ, with dL/dW from a full model of the merged weights."""
    spec = LoraSpec(3, **parts)
    weights = adapted(spec, b_scale=0.05, tie_word_embeddings=False)
    data = rows([9, 14, 20])
    config = {} if loss == "cross_entropy" else {"entropy_coef": 0.1, "temperature": 0.8}
    trainer = Trainer(weights, 4096)
    finish(trainer.forward_backward(request(data, loss, **config)))
    merged = Weights(weights.config, weights.snapshot().flat, with_grad=True)
    finish(Trainer(merged, 4096).forward_backward(request(data, loss, **config)))
    full = Weights(weights.config, merged.grad_flat).hf_views()
    scale = spec.alpha / spec.rank
    for name, low_rank in weights.adapter.low_ranks.items():
        grad = full[f"{name}.weight"]
        for got, expected in [
            (low_rank.a.grad, scale * low_rank.b.detach().t() @ grad),
            (low_rank.b.grad, scale * grad @ low_rank.a.detach().t()),
        ]:
            assert torch.allclose(got, expected, atol=float(expected.abs().max()) * 2e-4), name


def test_packed_rows_of_an_adapter_give_the_gradient_of_rows_alone():
    data = rows([5, 31, 17, 17, 60, 2])
    packed, alone = (Trainer(adapted(LoraSpec(4), b_scale=0.05), 4096) for _ in range(2))
    finish(packed.forward_backward(request(data, "ppo")))
    for row in data:
        finish(alone.forward_backward(request([row], "ppo")))
    scale = float(alone.weights.grad_flat.abs().max())
    assert torch.allclose(packed.weights.grad_flat, alone.weights.grad_flat, atol=scale * 1e-5)


def test_training_moves_the_adapter_only():
    weights = adapted(LoraSpec(4))
    base, before = weights.flat.clone(), weights.adapter.flat.clone()
    trainer = Trainer(weights, 4096)
    for _ in range(2):
        finish(trainer.forward_backward(request(rows([9, 20]))))
        trainer.optim_step(AdamParams(learning_rate=1e-2, eps=1e-8), None)
    assert torch.equal(weights.flat, base)
    assert not torch.equal(weights.adapter.flat, before)
    assert trainer.optimiser.mean.numel() == weights.adapter.flat.numel() < base.numel()


@pytest.mark.parametrize("rank", [1, 2, 7, 64])
def test_init_depends_on_the_seed_alone(rank):
    spec = LoraSpec(rank)
    first, again, other = adapted(spec, 3), adapted(spec, 3), adapted(spec, 4)
    assert torch.equal(first.adapter.flat, again.adapter.flat)
    assert not torch.equal(first.adapter.flat, other.adapter.flat)
    inputs = tiny_config().hidden_size
    a = first.adapter.low_ranks["model.layers.0.self_attn.q_proj"].a
    assert a.shape == (rank, inputs) and float(a.detach().abs().max()) <= inputs**-0.5


def test_a_frozen_head_gets_no_gradient():
    weights = adapted(LoraSpec(2, train_unembed=False))
    hidden = weights.hidden(pack([np.arange(5)], CPU))
    assert hidden.requires_grad and not weights.head.requires_grad


def greedy(client, target: dict) -> dict:
    body = sample_body(TEXT[:9], "", temperature=0.0, max_tokens=16) | {"sampling_session_id": None} | target
    return client.post("/ext/v1/sample", body).json


def test_an_adapter_learns_serves_and_is_kept_whole(client):
    model = client.model(rank=4)
    train(model, 12)
    served = model.serve()
    assert served["weight_version"] == 12
    path = model.call("save_weights", path="twelve")["path"]
    sampler = model.call("save_weights_for_sampler", path="twelve")["path"]
    by_session = greedy(client, {"sampling_session_id": served["sampling_session_id"]})
    by_path = greedy(client, {"model_path": sampler})
    assert by_session["sequences"][0]["tokens"] == by_path["sequences"][0]["tokens"]
    untrained = greedy(client, {"base_model": "tiny"})
    assert by_session["sequences"][0]["tokens"] != untrained["sequences"][0]["tokens"]
    resumed = client.model(rank=4, seed=9)
    assert resumed.call("load_weights", path=path, optimizer=True)["step"] == 12
    for each in (model, resumed):
        train(each, 2)
    assert loss_of(resumed) == pytest.approx(loss_of(model), abs=1e-6)
    info = client.api("weights_info", {"tinker_path": path}).json
    assert (info["is_lora"], info["lora_rank"], info["train_mlp"]) == (True, 4, True)
    described = client.api("get_info", {"model_id": model.id}).json
    assert (described["is_lora"], described["lora_rank"]) == (True, 4)
    run = client.send("GET", f"/api/v1/training_runs/{model.id}").json
    assert (run["is_lora"], run["lora_rank"]) == (True, 4)


def test_adapters_of_one_base_do_not_touch_each_other(client):
    still, moved, full = client.model(rank=2, seed=1), client.model(rank=8, seed=2), client.model(seed=0)
    before = loss_of(still)
    assert loss_of(moved) == pytest.approx(before, abs=1e-5)
    train(moved, 4)
    train(full, 4)
    assert loss_of(still) == before
    assert loss_of(moved) < before - 0.5


@pytest.mark.parametrize("other", [{"rank": 3}, {"rank": 4, "train_mlp": False}, {"rank": 0}], ids=str)
def test_a_checkpoint_is_loaded_only_where_it_fits(client, other):
    path = client.model(rank=4).call("save_weights", path="four")["path"]
    model = client.model(**other)
    refused = client.api("load_weights", {**model.body(path=path, optimizer=False)})
    assert (refused.status, refused.json["field"]) == (422, "path")
    assert "rank 4" in refused.json["detail"]


def tar_of(client, model, name: str, form: str) -> dict[str, bytes]:
    reply = client.send("GET", f"/ext/v1/checkpoints/{model.id}/weights/{name}/export?format={form}")
    assert reply.status == 200, reply.body
    with tarfile.open(fileobj=io.BytesIO(reply.body)) as tar:
        return {member.name: tar.extractfile(member).read() for member in tar.getmembers()}


def test_exports_as_a_peft_folder_and_merged(client, tmp_path):
    """`transformers` reads the merged folder and gives the trainer's log-probabilities."""
    from transformers import AutoModelForCausalLM

    model = client.model(rank=4)
    train(model, 6)
    model.call("save_weights", path="six")
    peft = tar_of(client, model, "six", "peft")
    config, tensors = json.loads(peft["adapter_config.json"]), load(peft["adapter_model.safetensors"])
    assert (config["peft_type"], config["r"], config["lora_alpha"]) == ("LORA", 4, 32)
    assert config["target_modules"] == sorted(
        ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj", "lm_head"]
    )
    assert tensors["base_model.model.model.layers.1.mlp.down_proj.lora_A.weight"].shape == (4, 48)
    for name, content in tar_of(client, model, "six", "hf").items():
        (tmp_path / name).write_bytes(content)
    read = AutoModelForCausalLM.from_pretrained(tmp_path)
    with torch.no_grad():
        logs = torch.log_softmax(read(torch.tensor([TEXT[:-1]])).logits[0].float(), -1)
    theirs = logs.gather(1, torch.tensor(TEXT[1:])[:, None]).squeeze(1).tolist()
    asked = {"data": [datum(TEXT)], "loss_fn": "cross_entropy"}
    ours = model.call("forward", forward_input=asked)["loss_fn_outputs"][0]["logprobs"]["data"]
    assert ours == pytest.approx(theirs, abs=1e-4)


def test_peft_reads_the_exported_adapter(client, tmp_path):
    """PEFT itself, over the base, gives the trainer's log-probabilities."""
    from peft import PeftModel
    from transformers import AutoModelForCausalLM

    base = client.model(seed=0)
    base.call("save_weights", path="base")
    for name, content in tar_of(client, base, "base", "hf").items():
        (tmp_path / name).write_bytes(content)
    model = client.model(rank=4)
    train(model, 6)
    model.call("save_weights", path="six")
    (tmp_path / "adapter").mkdir()
    for name, content in tar_of(client, model, "six", "peft").items():
        (tmp_path / "adapter" / name).write_bytes(content)
    read = PeftModel.from_pretrained(AutoModelForCausalLM.from_pretrained(tmp_path), tmp_path / "adapter")
    with torch.no_grad():
        logs = torch.log_softmax(read(input_ids=torch.tensor([TEXT[:-1]])).logits[0].float(), -1)
    theirs = logs.gather(1, torch.tensor(TEXT[1:])[:, None]).squeeze(1).tolist()
    asked = {"data": [datum(TEXT)], "loss_fn": "cross_entropy"}
    ours = model.call("forward", forward_input=asked)["loss_fn_outputs"][0]["logprobs"]["data"]
    assert ours == pytest.approx(theirs, abs=1e-4)


def test_a_killed_workers_adapter_resumes_from_its_checkpoint(tmp_path, model_root):
    losses = []
    with WorkerProcess(tmp_path, model_root) as worker, worker.client() as client:
        model = client.model(rank=4)
        train(model, 3)
        path = model.call("save_weights", path="three")["path"]
        train(model, 2)
        losses.append(loss_of(model))
        worker.kill()
    with WorkerProcess(tmp_path, model_root) as worker, worker.client() as client:
        body = {"session_id": client.session(), "model_seq_id": 0, "path": path, "optimizer": True}
        made = client.future("load_weights", body)
        session = body["session_id"]
        assert (made["model_id"], made["step"]) == (f"{session}-m0", 3)
        # The official client composes the id itself.
        info = client.api("get_info", {"model_id": f"{session}:train:0"}).json
        assert (info["model_id"], info["lora_rank"]) == (made["model_id"], 4)
        from worker_process import Model

        resumed = Model(client, made["model_id"])
        train(resumed, 2)
        losses.append(loss_of(resumed))
    assert losses[1] == pytest.approx(losses[0], abs=1e-6)
