"""Sampling over real HTTP: one call and two calls, stops, seeds, versions, log-probabilities."""

from __future__ import annotations

import itertools

import pytest
from worker_process import WorkerProcess, datum, encoded, sample_body

TEXT = [256, *b"find a", 259, 257, *b'[get(k="a")]', 259]


def assert_same(a: list[dict], b: list[dict]) -> None:
    """Equal samples. A cached prefix changes the order of sums, so log-probabilities agree to rounding only."""
    assert [s["tokens"] for s in a] == [s["tokens"] for s in b]
    for left, right in zip(a, b, strict=True):
        assert left["logprobs"] == pytest.approx(right["logprobs"], abs=1e-5)


def test_one_call_and_two_call_sampling_agree(client):
    session = client.model().serve()["sampling_session_id"]
    body = sample_body(TEXT[:9], session, stop=[259])
    one = client.post("/ext/v1/sample", body).json
    two = client.future("asample", {**body, "seq_id": 0})
    assert_same(one["sequences"], two["sequences"])
    sequence = one["sequences"][0]
    assert len(sequence["tokens"]) == len(sequence["logprobs"]) <= 8
    assert all(logprob <= 0 for logprob in sequence["logprobs"])


def test_asample_replays_by_session_and_number(client):
    session = client.model().serve()["sampling_session_id"]
    body = {**sample_body(TEXT[:9], session), "seq_id": 5}
    first = client.api("asample", body).json["request_id"]
    assert client.api("asample", body).json["request_id"] == first
    changed = client.api("asample", {**body, "num_samples": 2})
    assert (changed.status, changed.json["code"]) == (409, "conflict")
    assert client.api("asample", {**body, "seq_id": 99}).json["request_id"] != first


def test_stop_tokens_are_part_of_the_answer_and_stop_texts_are_found(client):
    session = client.model().serve()["sampling_session_id"]
    free = client.post("/ext/v1/sample", sample_body(TEXT[:9], session, max_tokens=24)).json["sequences"][0]
    assert (len(free["tokens"]), free["stop_reason"]) == (24, "length")
    stop = free["tokens"][5]
    cut = client.post("/ext/v1/sample", sample_body(TEXT[:9], session, max_tokens=24, stop=[stop])).json["sequences"][0]
    assert cut["stop_reason"] == "stop"
    assert cut["tokens"] == free["tokens"][: free["tokens"].index(stop) + 1]
    texts = [t for t in free["tokens"] if 32 < t < 127]
    by_text = client.post("/ext/v1/sample", sample_body(TEXT[:9], session, max_tokens=24, stop=[chr(texts[0])])).json[
        "sequences"
    ][0]
    assert by_text["tokens"] == free["tokens"][: free["tokens"].index(texts[0]) + 1]


def test_num_samples_differ_and_a_seed_repeats(client):
    session = client.model().serve()["sampling_session_id"]
    body = {**sample_body(TEXT[:9], session), "num_samples": 4}
    first, again = (client.post("/ext/v1/sample", body).json["sequences"] for _ in range(2))
    assert [s["tokens"] for s in first] == [s["tokens"] for s in again]
    assert len({tuple(s["tokens"]) for s in first}) == 4


def test_prompt_logprobs(client):
    model = client.model()
    session = model.serve()["sampling_session_id"]
    body = {**sample_body(TEXT, session), "prompt_logprobs": True, "topk_prompt_logprobs": 2}
    answer = client.post("/ext/v1/sample", body).json
    forward = model.call("forward", forward_input={"data": [datum(TEXT)], "loss_fn": "cross_entropy"})
    assert answer["prompt_logprobs"][0] is None
    assert answer["prompt_logprobs"][1:] == pytest.approx(forward["loss_fn_outputs"][0]["logprobs"]["data"], abs=1e-5)
    assert [len(row) for row in answer["topk_prompt_logprobs"][1:]] == [2] * (len(TEXT) - 1)


def test_sampling_a_base_model_and_a_stored_sampler_checkpoint(client):
    body = {"session_id": client.session(), "sampling_session_seq_id": 0, "base_model": "tiny"}
    base = client.api("create_sampling_session", body).json["sampling_session_id"]
    assert client.api("create_sampling_session", body).json["sampling_session_id"] == base
    assert client.post("/ext/v1/sample", sample_body(TEXT[:9], base)).json["weight_version"] == 0
    model = client.model()
    model.forward_backward([datum(TEXT)])
    model.optim_step()
    live = model.serve()["sampling_session_id"]
    path = model.call("save_weights_for_sampler", path="named")["path"]
    assert path == f"tinker://{model.id}/sampler_weights/named"
    stored = {**sample_body(TEXT[:9], live), "model_path": path}
    del stored["sampling_session_id"]
    answers = [client.post("/ext/v1/sample", b).json for b in (sample_body(TEXT[:9], live), stored)]
    assert_same(answers[0]["sequences"], answers[1]["sequences"])
    assert answers[1]["weight_version"] == 1


def test_old_sampling_sessions_end_but_the_newest_four_serve(client):
    model = client.model()
    sessions = [model.serve()["sampling_session_id"] for _ in range(6)]
    statuses = [client.post("/ext/v1/sample", sample_body(TEXT[:9], s)).status for s in sessions]
    assert statuses == [404, 404, 200, 200, 200, 200]


def test_sampled_logprobs_are_what_the_trainer_recomputes(client):
    model = client.model()
    session = model.serve()["sampling_session_id"]
    body = sample_body(TEXT[:9], session, max_tokens=40, temperature=0.7)
    sampled = client.post("/ext/v1/sample", body).json["sequences"][0]
    whole = TEXT[:9] + sampled["tokens"]
    lead = [0.0] * 8
    row = datum(
        whole,
        logprobs=lead + sampled["logprobs"],
        advantages=lead + [0.1] * 40,
        weights=lead + [1.0] * 40,
    )
    result = model.forward_backward([row], "ppo", {"temperature": 0.7})
    assert result["metrics"]["logprob_gap:max"] < 1e-5
    assert result["metrics"]["trained_tokens:sum"] == 40
    # At another temperature the trainer computes other log-probabilities.
    other = model.forward_backward([row], "ppo", {"temperature": 1.0})
    assert other["metrics"]["logprob_gap:max"] > 1e-2


def test_encoded_chunks_are_joined(client):
    session = client.model().serve()["sampling_session_id"]
    body = sample_body(TEXT[:9], session)
    split = {"chunks": [*encoded(TEXT[:4])["chunks"], *encoded(TEXT[4:9])["chunks"]]}
    answers = [client.post("/ext/v1/sample", b).json["sequences"] for b in (body, {**body, "prompt": split})]
    assert_same(answers[0], answers[1])


def test_the_load_tells_what_runs_and_what_finds_no_row(tmp_path, model_root):
    with WorkerProcess(tmp_path, model_root, "--max-rows", "4") as process, process.client() as client:
        idle = {"running": 0, "waiting": 0, "cache_use": 0.0}
        session = client.model().serve()["sampling_session_id"]
        seq_ids = itertools.count()

        def load() -> dict:
            return client.send("GET", "/ext/v1/load").json

        def seen(samples: int, **wanted: float) -> dict:
            """The first reading like that under so many samples, which are asked for again should they end unseen."""
            while True:
                while load() != idle:
                    pass
                body = {**sample_body(TEXT[:9], session, max_tokens=110), "num_samples": samples}
                asked = client.api("asample", {**body, "seq_id": next(seq_ids)}).json["request_id"]
                readings = (load() for _ in range(200))
                found = next((reading for reading in readings if wanted.items() <= reading.items()), None)
                client.post("/ext/v1/cancel", {"request_id": asked})
                if found is not None:
                    return found

        assert load() == idle
        assert seen(1000, running=4)["waiting"] > 0
        # Twins of a prompt that is being read have a row as soon as it is.
        assert seen(2, running=2) == {"running": 2, "waiting": 0, "cache_use": 0.5}
