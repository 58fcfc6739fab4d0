"""Sampling over real HTTP: one call and two calls, stops, seeds, versions, log-probabilities."""

from __future__ import annotations

import itertools
import json
from concurrent.futures import ThreadPoolExecutor

import pytest
from lesson import TEXT
from worker_process import Client, WorkerProcess, datum, encoded, sample_body


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


def test_scoring_rows_equals_the_trainer_at_the_same_temperature(client):
    model = client.model()
    session = model.serve()["sampling_session_id"]
    rows = [TEXT, TEXT[:5], TEXT[3:]]
    scored = client.post("/ext/v1/score", {"rows": rows, "temperature": 0.7, "sampling_session_id": session}).json
    loss = {"data": [datum(row) for row in rows], "loss_fn": "cross_entropy", "loss_fn_config": {"temperature": 0.7}}
    trained = model.call("forward", forward_input=loss)["loss_fn_outputs"]
    for ours, theirs in zip(scored["logprobs"], trained, strict=True):
        assert ours == pytest.approx(theirs["logprobs"]["data"], abs=1e-6)


def test_scoring_keeps_to_weights_that_the_training_moved_on_from(client):
    model = client.model()
    path = model.call("save_weights", path="before")["path"]
    body = {"rows": [TEXT], "model_path": path}
    before = client.post("/ext/v1/score", body).json["logprobs"][0]
    model.forward_backward([datum(TEXT)])
    model.optim_step()
    assert client.post("/ext/v1/score", body).json["logprobs"][0] == before


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"rows": []}, "rows"),
        ({"rows": [[1]]}, "rows[0]"),
        ({"rows": [[1, 2], [1, 99_999]]}, "rows[1]"),
        ({"rows": [[1, 2.5]]}, "rows[0]"),
        ({"temperature": 0}, "temperature"),
        ({"sampling_session_id": None}, "sampling_session_id"),
    ],
)
def test_bad_score_requests_name_the_field(client, change, field):
    session = client.model().serve()["sampling_session_id"]
    body = {"rows": [[1, 2]], "sampling_session_id": session, **change}
    answer = client.post("/ext/v1/score", body)
    assert (answer.status, answer.json["field"]) == (422, field)


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


def test_a_sampler_serves_what_another_worker_saves_beside_it_and_leaves_its_files_alone(tmp_path, model_root):
    data = tmp_path / "run"
    with WorkerProcess(data, model_root) as trainer, trainer.client() as training:
        model = training.model()
        model.forward_backward([datum(TEXT)])
        model.optim_step()
        half = data / "checkpoints" / model.id / "weights" / ".tmp-in-the-making"
        half.mkdir(parents=True)
        path = model.call("save_weights_for_sampler", path="serve-3")["path"]
        body = {**sample_body(TEXT[:9], ""), "sampling_session_id": None, "model_path": path}
        wanted = training.post("/ext/v1/sample", body).json
        with WorkerProcess(data, model_root, "--sampler") as sampler:
            assert half.exists()
            # All of them come before it has the weights.
            with ThreadPoolExecutor(6) as pool:
                answers = list(pool.map(lambda _: _post(sampler.url, body), range(6)))
            assert [answer["weight_version"] for answer in answers] == [1] * 6
            for answer in answers:
                assert_same(answer["sequences"], wanted["sequences"])
            with sampler.client() as client:
                refused = client.api("create_model", {"session_id": client.session(), "base_model": "tiny"})
                assert refused.status == 422
                assert "only samples" in refused.json["detail"]
                assert client.post("/ext/v1/sample", {**body, "model_path": path + "x"}).json["code"] == "unknown_model"


def _post(url: str, body: dict) -> dict:
    with Client(url) as client:
        return client.post("/ext/v1/sample", body).json


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


def test_a_sample_is_told_as_it_is_made_and_adds_up_to_the_whole(client):
    session = client.model().serve()["sampling_session_id"]
    body = {**sample_body(TEXT[:9], session, max_tokens=24), "num_samples": 3}
    whole = client.post("/ext/v1/sample", body).json
    reply = client.post("/ext/v1/sample", {**body, "stream": True})
    assert (reply.status, reply.headers["content-type"]) == (200, "application/x-ndjson")
    *news, end = [json.loads(line) for line in reply.body.splitlines()]
    assert end == {"stop_reasons": ["length"] * 3, "weight_version": whole["weight_version"]}
    made = [{"tokens": [], "logprobs": []} for _ in range(3)]
    for line in news:
        made[line["sample"]]["tokens"] += line["tokens"]
        made[line["sample"]]["logprobs"] += line["logprobs"]
    assert_same(made, whole["sequences"])
    assert len(news) >= 24


def test_what_is_wrong_with_a_streamed_sample_is_its_status(client):
    session = client.model().serve()["sampling_session_id"]
    for change, field in [
        ({"stream": 1}, "stream"),
        ({"stream": True, "prompt_logprobs": True}, "prompt_logprobs"),
        ({"stream": True, "prompt": {"chunks": []}}, "prompt.chunks"),
    ]:
        reply = client.post("/ext/v1/sample", {**sample_body(TEXT[:9], session), **change})
        assert (reply.status, reply.json["field"]) == (422, field)


def test_whoever_leaves_a_stream_ends_its_sample(client):
    session = client.model().serve()["sampling_session_id"]
    body = {**sample_body(TEXT[:9], session, max_tokens=110), "stream": True, "num_samples": 64}

    def ended() -> str:
        lines = client.send("GET", "/ext/v1/metrics").body.decode().splitlines()
        return next(line for line in lines if "_sequences_total " in line and not line.startswith("#"))

    def left_early() -> bool:
        before = ended()
        with Client(f"http://{client.host}:{client.port}") as leaving:
            leaving.connection.request("POST", "/ext/v1/sample", json.dumps(body), leaving.headers)
            assert leaving.connection.getresponse().read(10)
        while client.send("GET", "/ext/v1/load").json["running"] > 0:
            pass
        return ended() == before

    # One that ended before anybody could leave says nothing.
    assert any(left_early() for _ in range(10))
