"""The Tinker protocol over real HTTP: sessions, models, futures, training, checkpoints."""

from __future__ import annotations

import hashlib
import json

import pytest
from lesson import TEXT
from worker_process import KEY, datum, sample_body



def test_health_needs_no_key_and_everything_else_does(client):
    assert client.send("GET", "/api/v1/healthz", headers={"X-API-Key": ""}).json == {"status": "ok"}
    for key in ("", "tml-wrong", KEY + "x"):
        refused = client.send("GET", "/ext/v1/info", headers={"X-API-Key": key})
        assert (refused.status, refused.json["code"]) == (401, "unauthorised")


def test_capabilities_config_telemetry_info(client, worker):
    supported = client.send("GET", "/api/v1/get_server_capabilities").json["supported_models"]
    assert supported == [{"model_name": "tiny", "max_context_length": 128}]
    assert client.api("client/config", {"sdk_version": "0.25.0"}).json["pjwt_auth_enabled"] is False
    assert client.api("telemetry", {"events": []}).status == 200
    info = client.send("GET", "/ext/v1/info").json
    assert info["boot_id"] == worker.boot_id
    assert info["reduction"] == "sum"
    assert info["losses"] == ["cross_entropy", "importance_sampling", "ppo", "cispo", "gspo"]
    assert info["base_models"][0].keys() == {"name", "parameters", "max_context", "vocab_size"}


def test_session_heartbeat(client):
    session = client.session()
    assert client.api("session_heartbeat", {"session_id": session}).status == 200
    assert client.api("session_heartbeat", {"session_id": "s-gone"}).json["code"] == "unknown_model"


def test_create_model_is_idempotent_by_session_and_number(client):
    body = {
        "session_id": client.session(),
        "model_seq_id": 0,
        "base_model": "tiny",
        "lora_config": {"rank": 0, "seed": 3},
    }
    first = client.api("create_model", body).json
    assert client.api("create_model", body).json == first
    assert client.result(first["request_id"])["model_id"] == first["model_id"]
    other = client.api("create_model", {**body, "lora_config": {"rank": 0, "seed": 4}})
    assert (other.status, other.json["code"]) == (409, "conflict")
    info = client.api("get_info", {"model_id": first["model_id"]}).json
    assert (info["model_name"], info["is_lora"]) == ("tiny", False)


def test_a_model_learns_and_serves_new_weights(client):
    model = client.model()
    before = model.serve()
    assert (before["weight_version"], model.state()["step"]) == (0, 0)
    losses = []
    for step in range(8):
        result = model.forward_backward([datum(TEXT), datum(TEXT[:12])])
        losses.append(result["metrics"]["loss:sum"])
        assert [len(o["logprobs"]["data"]) for o in result["loss_fn_outputs"]] == [len(TEXT) - 1, 11]
        assert model.state()["accumulated_datums"] == 2
        assert model.optim_step(expect_step=step)["step"] == step + 1
    assert losses[-1] < 0.7 * losses[0]
    after = model.serve()
    assert after["weight_version"] == 8
    answers = [
        client.post("/ext/v1/sample", sample_body(TEXT[:9], session["sampling_session_id"], temperature=0.0)).json
        for session in (before, after)
    ]
    assert [answer["weight_version"] for answer in answers] == [0, 8]
    assert answers[0]["sequences"][0]["tokens"] != answers[1]["sequences"][0]["tokens"]
    state = model.state()
    assert (state["step"], state["weight_version"], state["last_seq_id"]) == (8, 8, model.seq)


def test_forward_leaves_no_gradient(client):
    model = client.model()
    forward = model.call("forward", forward_input={"data": [datum(TEXT)], "loss_fn": "cross_entropy"})
    assert model.state()["accumulated_datums"] == 0
    trained = model.forward_backward([datum(TEXT)])
    assert forward["loss_fn_outputs"] == trained["loss_fn_outputs"]


def test_checkpoints_listing_and_deletion(client):
    model = client.model()
    model.forward_backward([datum(TEXT)])
    model.optim_step()
    path = model.call("save_weights", path="one")["path"]
    assert path == f"tinker://{model.id}/weights/one"
    info = client.api("weights_info", {"tinker_path": path}).json
    assert (info["base_model"], info["is_lora"], info["step"]) == ("tiny", False, 1)
    run = client.send("GET", f"/api/v1/training_runs/{model.id}").json
    assert (run["base_model"], run["last_checkpoint"]["tinker_path"]) == ("tiny", path)
    assert model.id in [r["training_run_id"] for r in client.send("GET", "/api/v1/training_runs").json["training_runs"]]
    listed = client.send("GET", f"/api/v1/training_runs/{model.id}/checkpoints").json["checkpoints"]
    assert [c["checkpoint_id"] for c in listed] == ["weights/one"]
    assert [c["name"] for c in model.state()["checkpoints"]] == ["one"]
    checkpoints = f"/api/v1/training_runs/{model.id}/checkpoints"
    moved = client.send("GET", f"{checkpoints}/weights/one/archive")
    assert (moved.status, moved.headers["location"].split("?")[0][-6:]) == (302, "export")
    assert client.send("DELETE", f"{checkpoints}/one").status == 400
    assert client.send("DELETE", f"{checkpoints}/weights/one").status == 204
    assert client.send("DELETE", f"{checkpoints}/weights/one").status == 404
    assert client.api("weights_info", {"tinker_path": path}).status == 404


def test_saving_a_name_again_needs_the_same_content(client):
    model = client.model()
    model.forward_backward([datum(TEXT)])
    model.optim_step()
    first = model.call("save_weights", path="same")
    assert model.call("save_weights", path="same") == first
    model.forward_backward([datum(TEXT)])
    model.optim_step()
    refused = model.call("save_weights", path="same")
    assert (refused.status, refused.json["code"]) == (409, "conflict")


def test_load_weights_with_and_without_the_optimiser(client):
    model = client.model()
    for _ in range(3):
        model.forward_backward([datum(TEXT)])
        model.optim_step()
    path = model.call("save_weights", path="three")["path"]
    kept, fresh = client.model(seed=9), client.model(seed=9)
    assert kept.call("load_weights", path=path, optimizer=True)["step"] == 3
    assert fresh.call("load_weights", path=path, optimizer=False)["step"] == 0
    data = [datum(TEXT)]
    results = []
    for m in (model, kept, fresh):
        m.forward_backward(data)
        m.optim_step()
        results.append(
            m.call("forward", forward_input={"data": data, "loss_fn": "cross_entropy"})["metrics"]["loss:sum"]
        )
    assert results[0] == pytest.approx(results[1], abs=1e-6)
    assert abs(results[0] - results[2]) > 1e-4


def test_expect_step_mismatch_applies_nothing(client):
    model = client.model()
    model.forward_backward([datum(TEXT)])
    body = {"model_id": model.id, "seq_id": model.seq + 1, "adam_params": {"learning_rate": 1e-2}}
    refused = client.api("optim_step", {**body, "expect_step": 4})
    assert (refused.status, refused.json["code"]) == (409, "step_mismatch")
    assert (model.state()["step"], model.state()["last_seq_id"]) == (0, 1)
    assert client.future("optim_step", {**body, "expect_step": 0})["step"] == 1


def test_zero_grad_abandons_a_step(client):
    a, b = client.model(), client.model()
    a.forward_backward([datum(TEXT)])
    assert client.post("/ext/v1/zero_grad", {"model_id": a.id}).json == {"dropped_datums": 1, "step": 0}
    for m in (a, b):
        m.forward_backward([datum(TEXT[:10])])
    assert a.optim_step()["metrics"] == b.optim_step()["metrics"]


def test_a_non_finite_gradient_is_skipped_and_counted(client):
    model = client.model()
    zeros = [0.0] * (len(TEXT) - 1)
    row = datum(TEXT, logprobs=[-10.0] * len(zeros), advantages=[1e38] * len(zeros), weights=[1.0] * len(zeros))
    model.forward_backward([row], "importance_sampling")
    result = model.optim_step()
    assert (result["metrics"]["skipped"], result["step"]) == (1.0, 1)
    model.forward_backward([datum(TEXT)])
    assert model.optim_step()["metrics"]["skipped"] == 0.0


def test_unload_model(client):
    model = client.model()
    session = model.serve()["sampling_session_id"]
    assert client.future("unload_model", {"model_id": model.id})["model_id"] == model.id
    assert client.api("get_info", {"model_id": model.id}).json["code"] == "unknown_model"
    assert client.post("/ext/v1/sample", sample_body(TEXT[:9], session)).status == 404


def test_futures_of_other_boots_are_gone(client):
    gone = client.api("retrieve_future", {"request_id": "r-0123456789abcdef-1"})
    assert gone.status == 410
    assert client.api("retrieve_future", {"request_id": "nonsense"}).status == 404


def test_metrics_and_events_hold_no_tokens(client, worker):
    session = client.model().serve()["sampling_session_id"]
    client.post("/ext/v1/sample", sample_body(TEXT[:9], session))
    text = client.send("GET", "/ext/v1/metrics").body.decode()
    assert "rolldeck_gpu_worker_sampled_tokens_total" in text and 'phase="idle"' in text
    with worker.client() as other:
        other.connection.request("GET", "/ext/v1/events", headers=other.headers)
        response = other.connection.getresponse()
        assert response.getheader("content-type") == "text/event-stream"
        assert response.readline() == b"event: state\n"
        state = json.loads(response.readline().removeprefix(b"data: "))
    assert state.keys() >= {"phase", "tokens_per_s", "models"}


def test_export_is_a_tar_with_its_sha256(client):
    model = client.model()
    model.call("save_weights", path="export")
    reply = client.send("GET", f"/ext/v1/checkpoints/{model.id}/weights/export/export?format=hf")
    assert reply.status == 200
    assert hashlib.sha256(reply.body).hexdigest() == reply.headers["x-content-sha256"]
    again = client.send("GET", f"/ext/v1/checkpoints/{model.id}/weights/export/export?format=hf")
    assert again.body == reply.body
    assert client.send("GET", f"/ext/v1/checkpoints/{model.id}/weights/export/export?format=peft").status == 422
