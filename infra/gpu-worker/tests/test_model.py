"""The two forward passes, packing, batching and prefix reuse agree with each other."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from tiny_model import CPU, SyncEngine, finish, request, rows, tiny_config, tiny_trainer, tiny_weights

from rolldeck_gpu_worker.errors import WorkerError
from rolldeck_gpu_worker.model import packed_hidden
from rolldeck_gpu_worker.packing import first_fit_decreasing, pack
from rolldeck_gpu_worker.prompt_logprobs import prompt_logprobs
from rolldeck_gpu_worker.sampling import SamplingParams, draw, uniforms
from rolldeck_gpu_worker.snapshots import Snapshot
from rolldeck_gpu_worker.weights import Weights

LENGTHS = [5, 31, 17, 17, 60, 2, 44, 17, 1]


def test_first_fit_decreasing():
    assert first_fit_decreasing([5, 3, 4, 2], 8) == [[0, 1], [2, 3]]
    assert first_fit_decreasing([9, 1], 8) == [[0], [1]]


def test_packed_gradient_equals_unpacked():
    data = rows(LENGTHS)
    packed, split, alone = tiny_trainer(), tiny_trainer(micro_batch_tokens=64), tiny_trainer()
    results = [finish(t.forward_backward(request(data, "ppo", temperature=0.8))) for t in (packed, split)]
    for row in data:
        finish(alone.forward_backward(request([row], "ppo", temperature=0.8)))
    scale = float(alone.weights.grad_flat.abs().max())
    for trainer in (packed, split):
        assert torch.allclose(trainer.weights.grad_flat, alone.weights.grad_flat, atol=scale * 1e-5)
    assert results[0]["metrics"]["loss:sum"] == pytest.approx(results[1]["metrics"]["loss:sum"], rel=1e-5)
    for a, b in zip(results[0]["loss_fn_outputs"], results[1]["loss_fn_outputs"], strict=True):
        assert a["logprobs"]["data"] == pytest.approx(b["logprobs"]["data"], abs=1e-5)


def test_a_sequence_does_not_see_its_neighbours():
    trainer = tiny_trainer()
    data = rows([12, 20, 33])
    together = finish(trainer.forward(request(data)))["loss_fn_outputs"]
    for index, row in enumerate(data):
        alone = finish(trainer.forward(request([row])))["loss_fn_outputs"][0]
        assert alone["logprobs"]["data"] == pytest.approx(together[index]["logprobs"]["data"], abs=1e-5)


def full_forward(snapshot: Snapshot, prompt: list[int], result: dict) -> list[float]:
    whole = np.asarray(prompt + result["sequences"][0]["tokens"])
    return prompt_logprobs(snapshot.weights, whole, 0)["prompt_logprobs"][len(prompt) :]


@pytest.mark.parametrize("prefill_tokens", [4096, 7], ids=["whole prompts", "prompts in chunks"])
def test_cached_sampling_equals_a_full_forward(prefill_tokens):
    snapshot = Snapshot("m", 0, tiny_weights())
    rng = np.random.default_rng(1)
    prompts = [rng.integers(0, 260, n).tolist() for n in (1, 3, 9, 9, 30, 41, 60, 2, 17, 80)]
    with SyncEngine(rows=6, prefill_tokens=prefill_tokens) as engine:
        results = engine.sample(snapshot, prompts, max_tokens=20)
    worst = 0.0
    for prompt, result in zip(prompts, results, strict=True):
        sequence = result["sequences"][0]
        expected = full_forward(snapshot, prompt, result)
        worst = max(worst, np.abs(np.subtract(sequence["logprobs"], expected)).max())
    assert worst < 1e-5


def test_what_is_sampled_does_not_depend_on_the_batch():
    snapshot = Snapshot("m", 0, tiny_weights())
    prompts = [[n, n + 1, n + 2] for n in range(40)]
    with SyncEngine(rows=16) as engine:
        together = engine.sample(snapshot, prompts)
    with SyncEngine(rows=1, prefix_bytes=0) as engine:
        alone = engine.sample(snapshot, prompts)
    assert [r["sequences"][0]["tokens"] for r in together] == [r["sequences"][0]["tokens"] for r in alone]


def test_prefixes_are_reused_within_a_version_and_never_across():
    first, second = Snapshot("m", 0, tiny_weights(0)), Snapshot("m", 0, tiny_weights(1))
    prompt = list(range(50))
    with SyncEngine() as engine:
        turn = engine.sample(first, [prompt])[0]
        longer = prompt + turn["sequences"][0]["tokens"] + [7, 8, 9]
        again = engine.sample(first, [longer])[0]
        # All but the turn's last token, which was never fed back.
        assert again["prompt_cache_hit_tokens"] == len(prompt) + 12 - 1
        other = engine.sample(second, [longer])[0]
        assert other["prompt_cache_hit_tokens"] == 0
        changed = engine.sample(first, [longer[:20] + [99] + longer[21:]])[0]
        assert changed["prompt_cache_hit_tokens"] == 20
    for snapshot, tokens, result in [(first, longer, again), (second, longer, other)]:
        expected = full_forward(snapshot, tokens, result)
        assert result["sequences"][0]["logprobs"] == pytest.approx(expected, abs=1e-5)


def test_two_versions_sample_side_by_side():
    snapshots = [Snapshot("m", version, tiny_weights(version)) for version in (0, 1)]
    prompts = [[5, 6, 7, n] for n in range(8)]
    with SyncEngine() as engine:
        alone = [engine.sample(s, prompts) for s in snapshots]
    with SyncEngine() as engine:
        import threading

        mixed: list = [None, None]

        def run(index: int) -> None:
            mixed[index] = engine.sample(snapshots[index], prompts)

        threads = [threading.Thread(target=run, args=(index,)) for index in (0, 1)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    for index in (0, 1):
        assert [r["sequences"][0]["tokens"] for r in mixed[index]] == [
            r["sequences"][0]["tokens"] for r in alone[index]
        ]
        assert {r["weight_version"] for r in mixed[index]} == {index}


def test_twins_of_a_prompt_read_it_once():
    snapshot = Snapshot("m", 0, tiny_weights())
    prompt = list(range(40))
    with SyncEngine() as engine:
        results = engine.sample(snapshot, [prompt] * 6)
    hits = sorted(r["prompt_cache_hit_tokens"] for r in results)
    assert hits == [0, 39, 39, 39, 39, 39]
    for result in results:
        expected = full_forward(snapshot, prompt, result)
        assert result["sequences"][0]["logprobs"] == pytest.approx(expected, abs=1e-5)


def test_the_prefix_cache_keeps_to_its_budget():
    snapshot = Snapshot("m", 0, tiny_weights())
    rng = np.random.default_rng(0)
    with SyncEngine(prefix_bytes=60_000) as engine:
        engine.sample(snapshot, [rng.integers(0, 260, 30).tolist() for _ in range(30)])
        cache = engine.engine.prefixes
        assert 0 < cache.bytes <= 60_000
        engine.engine.drop_snapshot(snapshot)
        engine.sample(Snapshot("m", 1, tiny_weights(1)), [[1]], max_tokens=1)
        assert (cache.bytes, len(cache), cache._index) == (0, 0, {})


def params(**changes) -> SamplingParams:
    base = {"max_tokens": 1, "temperature": 1.0, "top_p": 1.0, "top_k": -1, "seed": 0}
    return SamplingParams(**(base | {"stop_tokens": frozenset(), "stop_strings": ()} | changes))


def draws(logits: list[float], count: int = 4000, **changes) -> np.ndarray:
    matrix = torch.tensor([logits]).repeat(count, 1)
    return draw(matrix, [params(**changes)] * count, [0] * count, list(range(count)))[0]


def test_draws_follow_the_distribution():
    logits = [0.0, 1.0, -1.0, 2.0]
    for temperature in (0.5, 1.0, 2.0):
        expected = torch.softmax(torch.tensor(logits) / temperature, 0).numpy()
        counts = np.bincount(draws(logits, temperature=temperature), minlength=4) / 4000
        assert np.abs(counts - expected).max() < 0.03
    assert set(draws(logits, top_k=2)) == {1, 3}
    # 0.644 + 0.237 crosses 0.7 at the second token, which stays in.
    assert set(draws(logits, top_p=0.7)) == {1, 3}
    assert set(draws(logits, top_k=1, seed=5)) == {3}
    assert set(draws(logits, temperature=0.0)) == {3}
    assert 2 not in draws([0.0, 0.0, float("-inf"), 0.0])


def test_reported_logprobs_are_of_the_whole_tempered_distribution():
    logits = torch.tensor([[0.0, 1.0, -1.0, 2.0]])
    for temperature, scale in ((0.7, 0.7), (0.0, 1.0)):
        tokens, logprobs = draw(logits, [params(temperature=temperature, top_k=1)], [0], [0])
        assert float(logprobs[0]) == pytest.approx(float(torch.log_softmax(logits / scale, -1)[0, tokens[0]]), abs=1e-6)


def test_uniforms_differ_by_seed_sample_and_position():
    seeds = np.asarray([0, 0, 0, 1, 2**64 - 1], np.uint64)
    values = uniforms(seeds, np.asarray([0, 0, 1, 0, 0]), np.asarray([0, 1, 0, 0, 0]))
    assert len(set(values.tolist())) == 5 and values.min() >= 0 and values.max() < 1


def test_out_of_memory_halves_the_budget_once_and_keeps_the_step(monkeypatch):
    expected, trainer = tiny_trainer(), tiny_trainer(micro_batch_tokens=200)
    data = [rows([40, 50, 60], seed=s) for s in (1, 2)]
    for part in data:
        finish(expected.forward_backward(request(part)))
    finish(trainer.forward_backward(request(data[0])))
    monkeypatch.setattr(Weights, "hidden", _fails_above(110))
    finish(trainer.forward_backward(request(data[1])))
    assert trainer.accumulated_datums == 6
    scale = float(expected.weights.grad_flat.abs().max())
    assert torch.allclose(trainer.weights.grad_flat, expected.weights.grad_flat, atol=scale * 1e-5)
    monkeypatch.setattr(Weights, "hidden", _fails_above(0))
    with pytest.raises(WorkerError) as caught:
        finish(trainer.forward_backward(request(data[1])))
    assert (caught.value.code, "peak" in caught.value.detail) == ("oom", True)
    assert (trainer.accumulated_datums, float(trainer.weights.grad_flat.abs().max())) == (0, 0)


def _fails_above(tokens: int):
    def forward(weights, batch):
        if len(batch.tokens) > tokens:
            raise MemoryError("injected")
        return packed_hidden(weights, batch)

    return forward


def test_positions_count_from_zero_in_every_sequence():
    batch = pack([np.arange(3), np.arange(2)], CPU)
    assert batch.order == [1, 0]
    assert batch.positions.tolist() == [0, 1, 0, 1, 2]


def test_configs_that_would_run_wrongly_are_refused():
    for change in ({"attention_bias": True}, {"hidden_act": "gelu"}, {"rope_scaling": {"rope_type": "yarn"}}):
        with pytest.raises(WorkerError):
            tiny_config(**change)
