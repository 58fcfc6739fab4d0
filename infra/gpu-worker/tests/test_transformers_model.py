"""Architectures that `transformers` runs: loaded from folders, equal to the library's own forward pass, trained and sampled."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from tiny_model import CPU, SyncEngine, finish, request, rows
from transformers import AutoModelForCausalLM, LlamaConfig, MistralConfig, Qwen2Config, Qwen3Config
from worker_process import WorkerProcess, datum, sample_body

from rolldeck_gpu_worker.adamw import AdamParams
from rolldeck_gpu_worker.attention import PackedAttention
from rolldeck_gpu_worker.base_models import BaseModel, BaseModels
from rolldeck_gpu_worker.errors import WorkerError
from rolldeck_gpu_worker.lora import LoraSpec
from rolldeck_gpu_worker.prompt_logprobs import prompt_logprobs
from rolldeck_gpu_worker.snapshots import Snapshot
from rolldeck_gpu_worker.trainer import Trainer

SHAPE = {"vocab_size": 260, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2}
SHAPE |= {"num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 128, "initializer_range": 0.15}
SCALED = {"rope_type": "yarn", "factor": 2.0, "rope_theta": 10000.0, "original_max_position_embeddings": 64}
CONFIGS = {
    "llama": LlamaConfig(**SHAPE, tie_word_embeddings=True),
    "llama-untied": LlamaConfig(**SHAPE, tie_word_embeddings=False, attention_bias=True),
    "qwen2": Qwen2Config(**SHAPE, tie_word_embeddings=False),
    "mistral-window": MistralConfig(**SHAPE, sliding_window=64, tie_word_embeddings=False),
    "qwen3": Qwen3Config(**SHAPE, head_dim=8, tie_word_embeddings=True),
    # Its rope is not in the own forward pass.
    "qwen3-yarn": Qwen3Config(**SHAPE, head_dim=8, tie_word_embeddings=False, rope_parameters=SCALED),
}
RUNNERS = {name: "qwen3" if name == "qwen3" else "transformers" for name in CONFIGS}


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    folder = tmp_path_factory.mktemp("architectures")
    for name, config in CONFIGS.items():
        torch.manual_seed(3)
        AutoModelForCausalLM.from_config(config, dtype=torch.float32).save_pretrained(folder / name)
    return folder


@pytest.fixture(params=CONFIGS)
def base(root, request) -> BaseModel:
    return BaseModels([root]).get(request.param)


def library_logprobs(folder, tokens: np.ndarray) -> list[float]:
    """Of every token after the first, by `transformers` with its own attention."""
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager")
    ids = torch.from_numpy(tokens)[None]
    with torch.no_grad():
        logs = torch.log_softmax(model(ids).logits[0], -1)
    return logs[:-1].gather(1, ids[0, 1:, None]).squeeze(1).tolist()


def whole(row) -> np.ndarray:
    return np.append(row.tokens, row.targets[-1])


def logprobs(weights, data: list) -> list[list[float]]:
    outputs = finish(Trainer(weights, 4096).forward(request(data)))["loss_fn_outputs"]
    return [output["logprobs"]["data"] for output in outputs]


def test_log_probabilities_equal_the_librarys_row_by_row(base):
    """Packed together, so that a row that sees its neighbour would differ."""
    assert base.config.runner == RUNNERS[base.name]
    data = rows([12, 31, 5, 31, 50])
    weights = base.make_weights(0, CPU, with_grad=False)
    for row, ours in zip(data, logprobs(weights, data), strict=True):
        assert ours == pytest.approx(library_logprobs(base.folder, whole(row)), abs=1e-4)


def test_gradients_equal_the_librarys(base):
    data = rows([12, 31, 5])
    weights = base.make_weights(0, CPU, with_grad=True)
    finish(Trainer(weights, 4096).forward_backward(request(data)))
    model = AutoModelForCausalLM.from_pretrained(base.folder, dtype=torch.float32)
    for row in data:
        logs = torch.log_softmax(model(torch.from_numpy(row.tokens)[None]).logits[0], -1)
        (-logs.gather(1, torch.from_numpy(row.targets)[:, None]).sum()).backward()
    grads = type(weights)(weights.config, weights.grad_flat) if base.config.runner == "qwen3" else None
    ours = grads.hf_views() if grads else {name: view.grad for name, view in weights._views.items()}
    for name, parameter in model.named_parameters():
        scale = float(parameter.grad.abs().max())
        assert torch.allclose(ours[name], parameter.grad, atol=scale * 1e-3 + 1e-5), name


def test_cached_sampling_equals_a_full_forward(base):
    snapshot = Snapshot("m", 0, base.make_weights(0, CPU, with_grad=False))
    rng = np.random.default_rng(1)
    prompts = [rng.integers(0, 260, n).tolist() for n in (1, 3, 9, 30, 41, 2)]
    with SyncEngine(rows=4, prefill_tokens=11) as engine:
        results = engine.sample(snapshot, prompts, max_tokens=12)
    for prompt, result in zip(prompts, results, strict=True):
        sequence = result["sequences"][0]
        tokens = np.asarray(prompt + sequence["tokens"])
        full = prompt_logprobs(snapshot.weights, tokens, 0)["prompt_logprobs"][len(prompt) :]
        assert sequence["logprobs"] == pytest.approx(full, abs=1e-4)
        assert full == pytest.approx(library_logprobs(base.folder, tokens)[len(prompt) - 1 :], abs=1e-4)


def test_an_adapter_learns_and_its_merged_weights_equal_it(base):
    weights = base.make_adapted(LoraSpec(4), 1, CPU, with_grad=True)
    trainer, data = Trainer(weights, 4096), rows([12, 31, 5])
    before, frozen = logprobs(weights, data), weights.flat.clone()
    losses = []
    for _ in range(4):
        losses.append(finish(trainer.forward_backward(request(data)))["metrics"]["loss:sum"])
        trainer.optim_step(AdamParams(learning_rate=1e-2, eps=1e-8), None)
    assert losses[-1] < losses[0] and torch.equal(weights.flat, frozen)
    after, merged = logprobs(weights, data), logprobs(weights.snapshot(), data)
    assert np.abs(np.subtract(after[0], before[0])).max() > 1e-2
    for ours, theirs in zip(after, merged, strict=True):
        assert ours == pytest.approx(theirs, abs=1e-4)
    again = base.make_adapted(LoraSpec(4), 1, CPU, with_grad=False)
    again.load_stored(weights.to_stored())
    assert logprobs(again, data)[0] == pytest.approx(after[0], abs=1e-6)


@pytest.mark.parametrize("rank", [0, 3])
def test_recomputed_layers_give_the_same_gradient(base, rank, monkeypatch):
    calls = []
    attend = PackedAttention.__call__
    monkeypatch.setattr(PackedAttention, "__call__", lambda self, *args: (calls.append(args[0]), attend(self, *args))[1])
    data = rows([12, 31, 5])
    grads, losses, counts = [], [], []
    for recompute in (False, True):
        weights = base.make_for(LoraSpec(rank) if rank else None, 1, CPU, with_grad=True)
        weights.recompute = recompute
        calls.clear()
        losses.append(finish(Trainer(weights, 4096).forward_backward(request(data)))["metrics"]["loss:sum"])
        grads.append(weights.grad_flat)
        counts.append(len(calls))
    assert losses[0] == losses[1]
    assert torch.allclose(grads[0], grads[1], atol=float(grads[0].abs().max()) * 1e-6)
    assert counts == [2, 4]


def test_fresh_weights_depend_on_the_seed_alone(tmp_path):
    (tmp_path / "bare").mkdir()
    CONFIGS["llama"].architectures = ["LlamaForCausalLM"]
    CONFIGS["llama"].save_pretrained(tmp_path / "bare")
    base = BaseModels([tmp_path]).get("bare")
    state = torch.get_rng_state()
    first, again, other = (base.make_weights(seed, CPU, with_grad=False) for seed in (1, 1, 2))
    assert torch.equal(first.flat, again.flat) and not torch.equal(first.flat, other.flat)
    assert torch.equal(torch.get_rng_state(), state)
    assert base.parameters == first.flat.numel()


REFUSED = {
    "soft caps": {"architectures": ["Gemma2ForCausalLM"], "model_type": "gemma2", "head_dim": 8},
    "another class than its config's": {"architectures": ["MistralForCausalLM"], "model_type": "llama"},
    "a type that nobody knows": {"architectures": ["NewForCausalLM"], "model_type": "new"},
    "no decoder": {"architectures": ["BertForMaskedLM"], "model_type": "bert"},
    "no shape": {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": None},
}


@pytest.mark.parametrize("change", REFUSED.values(), ids=REFUSED)
def test_what_would_run_wrongly_is_refused(tmp_path, change):
    (tmp_path / "odd").mkdir()
    (tmp_path / "odd" / "config.json").write_text(json.dumps(SHAPE | change))
    with pytest.raises(WorkerError) as caught:
        BaseModels([tmp_path]).get("odd").make_weights(0, CPU, with_grad=False)
    assert (caught.value.code, caught.value.field) == ("bad_input", "base_model")


def test_a_name_is_compared_and_never_opened(root, tmp_path):
    path = str(root / "llama")
    models = BaseModels([tmp_path], {path: root / "llama"})
    assert models.get(path).folder == root / "llama"
    for name in (str(root / "qwen3"), f"{path}/", f"{path}/../llama", "llama", "", None):
        with pytest.raises(WorkerError) as caught:
            models.get(name)
        assert path in caught.value.detail


def test_a_worker_trains_samples_and_exports_a_llama(tmp_path, root):
    text = [256, *b"find a", 259, 257, *b'[get(k="a")]', 259]
    named = f"/models/a-llama={root / 'llama'}"
    with WorkerProcess(tmp_path, tmp_path, "--model", named) as worker, worker.client() as client:
        info = client.send("GET", "/ext/v1/info").json["base_models"]
        assert [(m["name"], m["vocab_size"]) for m in info] == [("/models/a-llama", 260)]
        library = AutoModelForCausalLM.from_config(CONFIGS["llama"])
        assert info[0]["parameters"] == sum(parameter.numel() for parameter in library.parameters())
        for rank in (0, 4):
            model = client.model("/models/a-llama", rank=rank)
            losses = []
            for _ in range(5):
                losses.append(model.forward_backward([datum(text)])["metrics"]["loss:sum"])
                model.optim_step()
            assert losses[-1] < losses[0]
            session = model.serve()["sampling_session_id"]
            sampled = client.post("/ext/v1/sample", sample_body(text[:9], session)).json["sequences"][0]
            row = text[:9] + sampled["tokens"]
            asked = {"data": [datum(row)], "loss_fn": "cross_entropy"}
            trained = model.call("forward", forward_input=asked)["loss_fn_outputs"][0]["logprobs"]["data"]
            assert sampled["logprobs"] == pytest.approx(trained[8:], abs=1e-4)
            path = model.call("save_weights", path="kept")["path"]
            form = "peft" if rank else "hf"
            exported = client.send("GET", f"/ext/v1/checkpoints/{model.id}/weights/kept/export?format={form}")
            assert exported.status == 200
            resumed = client.model("/models/a-llama", rank=rank, seed=7)
            assert resumed.call("load_weights", path=path, optimizer=True)["step"] == 5
            again = resumed.call("forward", forward_input=asked)["loss_fn_outputs"][0]["logprobs"]["data"]
            assert again == pytest.approx(trained, abs=1e-6)
        refused = client.api("create_model", {"session_id": client.session(), "base_model": str(root / "llama")})
        assert (refused.status, "/models/a-llama" in refused.json["detail"]) == (422, True)
