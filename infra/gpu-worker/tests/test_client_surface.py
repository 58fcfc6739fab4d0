"""What the official client asks beyond training itself: sessions, samplers, checkpoints with an end, models made by a load."""

from __future__ import annotations

import json
import time

import pytest
from lesson import TEXT, loss_of, train
from tiny_model import tiny_trainer
from worker_process import Model, WorkerProcess, datum, sample_body

from rolldeck_gpu_worker.checkpoints import CheckpointId, CheckpointStore
from rolldeck_gpu_worker.hosted_models import canonical_model_id

ONE = CheckpointId("m", "weights", "one")


@pytest.mark.parametrize(
    ("given", "id"),
    [("s-1:train:0", "s-1-m0"), ("s-1:train:12", "s-1-m12"), ("s-1-m0", "s-1-m0"), ("a:b", "a:b"), (3, 3)],
)
def test_the_id_that_a_client_composes(given, id):
    assert canonical_model_id(given) == id


def test_a_model_made_by_a_load_starts_where_the_checkpoint_ends(client):
    source = client.model(rank=4)
    train(source, 3)
    path = source.call("save_weights", path="three")["path"]
    session = client.session()
    body = {"session_id": session, "model_seq_id": 0, "path": path, "user_metadata": {"a": "b"}}
    first = client.api("load_weights", {**body, "optimizer": True}).json
    assert client.api("load_weights", {**body, "optimizer": True}).json == first
    assert client.api("load_weights", {**body, "optimizer": False}).json["code"] == "conflict"
    made = client.result(first["request_id"])
    assert (made["type"], made["step"], made["path"]) == ("load_weights", 3, path)
    fresh = client.future("load_weights", {**body, "model_seq_id": 1, "optimizer": False})
    assert (fresh["step"], fresh["model_id"]) == (0, f"{session}-m1")
    with_optimizer = Model(client, made["model_id"])
    assert loss_of(with_optimizer) == pytest.approx(loss_of(source), abs=1e-6)
    train(with_optimizer)
    train(source)
    assert loss_of(with_optimizer) == pytest.approx(loss_of(source), abs=1e-6)
    run = client.send("GET", f"/api/v1/training_runs/{session}:train:0").json
    assert (run["training_run_id"], run["user_metadata"]) == (f"{session}-m0", {"a": "b"})
    changes = [({"base_model": "other"}, "base_model"), ({"path": "x"}, "path"), ({"optimizer": 1}, "optimizer")]
    for change, field in changes:
        refused = client.api("load_weights", {**body, "model_seq_id": 2, "optimizer": True} | change)
        assert (refused.status, refused.json["field"]) == (422, field)


def test_a_model_whose_load_fails_is_gone(client):
    """A sampler checkpoint holds no optimizer state."""
    path = client.model(rank=2).call("save_weights_for_sampler", path="x")["path"]
    session = client.session()
    body = {"session_id": session, "model_seq_id": 0, "path": path, "optimizer": True}
    failed = client.future("load_weights", body)
    assert (failed.status, failed.json["field"]) == (422, "optimizer")
    for _ in range(50):
        if client.api("get_info", {"model_id": f"{session}-m0"}).status == 404:
            break
        time.sleep(0.1)
    assert client.api("get_info", {"model_id": f"{session}-m0"}).json["code"] == "unknown_model"


def test_each_sampling_client_counts_for_itself(client):
    """Two clients of one checkpoint use the same numbers for different prompts."""
    path = client.model(rank=2).call("save_weights_for_sampler", path="x")["path"]
    session = client.session()
    ids = []
    for number, target in enumerate([{"model_path": path}, {"model_path": path}, {"base_model": "tiny"}]):
        body = {"session_id": session, "sampling_session_seq_id": number, **target}
        ids.append(client.api("create_sampling_session", body).json["sampling_session_id"])
        assert client.api("create_sampling_session", body).json["sampling_session_id"] == ids[-1]
        described = client.send("GET", f"/api/v1/samplers/{ids[-1]}").json
        assert described == {"sampler_id": ids[-1], "base_model": "tiny", "model_path": target.get("model_path")}
    assert len(set(ids)) == 3
    for index, id in enumerate(ids):
        promise = client.api("asample", sample_body(TEXT[: 5 + index], id) | {"seq_id": 0})
        assert client.result(promise.json["request_id"])["sequences"]
    assert client.send("GET", "/api/v1/samplers/none").json["code"] == "unknown_model"


def test_many_checkpoints_sampled_in_turn_are_loaded_again(client):
    model, session = client.model(rank=2), client.session()
    ids, answers = [], []
    for number in range(6):
        train(model)
        path = model.call("save_weights_for_sampler", path=f"s{number}")["path"]
        body = {"session_id": session, "sampling_session_seq_id": number, "model_path": path}
        ids.append(client.api("create_sampling_session", body).json["sampling_session_id"])
        answers.append(client.post("/ext/v1/sample", sample_body(TEXT[:9], ids[-1])).json["sequences"])
    again = [client.post("/ext/v1/sample", sample_body(TEXT[:9], id)).json for id in ids]
    assert [each["sequences"] for each in again] == answers
    assert [each["weight_version"] for each in again] == [1, 2, 3, 4, 5, 6]


def test_a_deleted_name_is_not_sampled_any_more(client):
    model = client.model(rank=2)
    path = model.call("save_weights_for_sampler", path="gone")["path"]
    body = sample_body(TEXT[:9], "") | {"sampling_session_id": None, "model_path": path}
    assert client.post("/ext/v1/sample", body).status == 200
    run = f"/api/v1/training_runs/{model.id}/checkpoints"
    assert client.send("DELETE", f"{run}/sampler_weights/gone").status == 204
    assert client.post("/ext/v1/sample", body).status == 404
    train(model, 2)
    model.call("save_weights_for_sampler", path="gone")
    assert client.post("/ext/v1/sample", body).json["weight_version"] == 2
    train(model)
    model.call("save_weights_for_sampler", path="gone", overwrite=True)
    assert client.post("/ext/v1/sample", body).json["weight_version"] == 3


def test_overwriting_takes_the_newest_weights_and_notes(client):
    model = client.model(rank=2)
    train(model)
    first = model.call("save_weights", path="same", user_metadata={"try": "1"})
    train(model)
    assert model.call("save_weights", path="same").json["code"] == "conflict"
    second = model.call("save_weights", path="same", overwrite=True, user_metadata={"try": "2"})
    assert (first["step"], second["step"], first["path"]) == (1, 2, second["path"])
    listed = client.send("GET", f"/api/v1/training_runs/{model.id}/checkpoints").json["checkpoints"]
    assert [(each["user_metadata"], each["step"]) for each in listed] == [({"try": "2"}, 2)]
    everywhere = client.send("GET", "/api/v1/checkpoints?limit=1").json
    assert everywhere["checkpoints"][0]["tinker_path"] == second["path"]
    assert everywhere["cursor"]["total_count"] >= 1


def test_a_checkpoint_past_its_end_does_not_exist(tmp_path):
    store, trainer = CheckpointStore(tmp_path), tiny_trainer()
    state = {"base_model": "tiny", "step": 0, "seed": 0, "model_id": "m"}
    kept = CheckpointId("m", "weights", "kept")
    store.save(kept, trainer.weights, trainer.optimiser, {**state, "expires_at": time.time() + 1000})
    store.save(ONE, trainer.weights, trainer.optimiser, {**state, "expires_at": time.time() + 1000})
    store.remove_expired()
    assert [each.id.name for each in store.of_model("m")] == ["kept", "one"]
    file = store.folder(ONE) / "state.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"expires_at": time.time() - 1}))
    assert [each.id.name for each in store.of_model("m")] == ["kept"]
    store.remove_expired()
    assert not store.folder(ONE).exists() and store.find(kept) is not None
    store.save(ONE, trainer.weights, None, state)
    assert store.find(ONE) is not None


def test_a_checkpoints_end_is_told(client):
    model = client.model(rank=2)
    model.call("save_weights", path="ends", ttl_seconds=3600)
    listed = client.send("GET", f"/api/v1/training_runs/{model.id}/checkpoints").json["checkpoints"]
    assert listed[0]["expires_at"] > listed[0]["time"]


def test_a_finished_session_saves_and_unloads(client):
    model = client.model(rank=2)
    session = model.id.removesuffix("-m0")
    train(model)
    served = model.serve()["sampling_session_id"]
    assert session in client.send("GET", "/api/v1/sessions").json["sessions"]
    described = client.send("GET", f"/api/v1/sessions/{session}").json
    assert (described["training_run_ids"], described["sampler_ids"]) == ([model.id], [served])
    assert client.post(f"/api/v1/sessions/{session}/finish", {"reason": {"type": "odd"}}).status == 422
    assert client.post(f"/api/v1/sessions/{session}/finish", {"reason": {"type": "success"}}).status == 200
    assert client.api("get_info", {"model_id": model.id}).status == 404
    assert client.api("session_heartbeat", {"session_id": session}).status == 404
    kept = client.send("GET", f"/api/v1/training_runs/{model.id}/checkpoints").json["checkpoints"]
    assert len(kept) == 1 and kept[0]["checkpoint_id"].startswith("weights/finished-1-")


def test_a_fenced_session_is_finished_by_its_holder_only(client):
    headers = {"X-Rolldeck-Run": "r1", "X-Rolldeck-Fence": "1"}
    model = client.model(headers=headers)
    finish = f"/api/v1/sessions/{model.id.removesuffix('-m0')}/finish"
    refused = client.post(finish, {"reason": {"type": "success"}})
    assert (refused.status, refused.json["code"]) == (409, "fenced")
    assert client.post(finish, {"reason": {"type": "success"}}, headers).status == 200


def test_a_given_up_sample_is_cancelled_and_training_is_not(client):
    model = client.model()
    session = model.serve()["sampling_session_id"]
    sample = client.api("asample", sample_body(TEXT[:9], session, max_tokens=110) | {"num_samples": 512}).json
    assert client.api("cancel_future", {"request_id": sample["request_id"]}).status == 200
    ended = client.result(sample["request_id"])
    assert "sequences" in ended if isinstance(ended, dict) else ended.json["code"] == "cancelled"
    asked = {"data": [datum(TEXT)] * 64, "loss_fn": "cross_entropy"}
    sent = client.api("forward_backward", model.body(forward_backward_input=asked))
    client.api("cancel_future", {"request_id": sent.json["request_id"]})
    assert client.result(sent.json["request_id"])["metrics"]["loss:sum"] > 0


def test_settings_that_the_client_asks_for(client):
    config = client.api("client/config", {"sdk_version": "0.38.0"}).json
    assert (config["proto_compress_fwdbwd"], config["use_pyqwest_transport"]) == (False, False)
    assert client.api("client/dynamic_config", {"sdk_version": "0.38.0"}).json["sample_cancel_enabled"] is True
    compressed = client.send("POST", "/api/v1/forward_backward", b"", {"Content-Encoding": "zstd"})
    assert compressed.status == 415


@pytest.mark.parametrize("rank", [0, 2])
def test_a_model_that_sampled_first_can_be_trained(tmp_path, model_root, rank):
    with WorkerProcess(tmp_path, model_root) as worker, worker.client() as client:
        model = client.model(rank=rank, train_unembed=False) if rank else client.model()
        session = model.serve()["sampling_session_id"]
        assert client.post("/ext/v1/sample", sample_body(TEXT[:9], session)).status == 200
        assert model.forward_backward([datum(TEXT)])["metrics"]["loss:sum"] > 0
