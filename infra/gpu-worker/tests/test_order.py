"""Order, idempotency, fencing, cancelling and leases of training requests."""

from __future__ import annotations

import asyncio
import json
import threading
import time

import pytest
from lesson import TEXT
from worker_process import WorkerProcess, datum, loss_input, sample_body

from rolldeck_gpu_worker.errors import WorkerError
from rolldeck_gpu_worker.futures import FutureTable



def forward_backward(model, seq_id: int, sequence: list[int] = TEXT) -> dict:
    return {"model_id": model.id, "seq_id": seq_id, "forward_backward_input": loss_input([datum(sequence)])}


def test_a_replay_gets_the_first_answer_and_adds_nothing(client):
    model = client.model()
    body = forward_backward(model, 1)
    first = client.api("forward_backward", body).json["request_id"]
    assert client.api("forward_backward", body).json["request_id"] == first
    assert client.result(first) == client.result(first)
    assert model.state()["accumulated_datums"] == 1
    step = {"model_id": model.id, "seq_id": 2, "adam_params": {"learning_rate": 1e-3}}
    results = [client.future("optim_step", step) for _ in range(3)]
    assert [r["step"] for r in results] == [1, 1, 1]
    assert model.state()["step"] == 1


def test_a_number_used_for_another_payload_is_a_conflict(client):
    model = client.model()
    client.future("forward_backward", forward_backward(model, 1))
    for name, body in [
        ("forward_backward", forward_backward(model, 1, TEXT[:8])),
        ("optim_step", {"model_id": model.id, "seq_id": 1, "adam_params": {}}),
    ]:
        refused = client.api(name, body)
        assert (refused.status, refused.json["code"]) == (409, "conflict")


def test_a_gap_waits_and_is_filled(client, worker):
    model = client.model()
    late: list = []

    def send_second() -> None:
        with worker.client() as other:
            late.append(other.api("optim_step", {"model_id": model.id, "seq_id": 2, "adam_params": {}}).status)

    thread = threading.Thread(target=send_second)
    thread.start()
    time.sleep(0.2)
    assert not late
    client.future("forward_backward", forward_backward(model, 1))
    thread.join()
    assert late == [200]
    assert model.state()["last_seq_id"] == 2


def test_a_gap_that_stays_is_refused(tmp_path, model_root):
    with WorkerProcess(tmp_path, model_root, "--gap-wait-s", "0.2") as process, process.client() as client:
        model = client.model()
        refused = client.api("forward_backward", forward_backward(model, 3))
        assert (refused.status, refused.json["code"]) == (409, "sequence_gap")
        assert model.state()["last_seq_id"] == 0
        client.future("forward_backward", forward_backward(model, 1))


def test_refused_input_uses_no_number(client):
    model = client.model()
    bad = {**forward_backward(model, 1), "forward_backward_input": loss_input([datum([1, 9999])])}
    assert client.api("forward_backward", bad).status == 422
    assert model.state()["last_seq_id"] == 0
    client.future("forward_backward", forward_backward(model, 1))


def test_requests_sent_ahead_run_in_order(client):
    a, b = client.model(), client.model()
    ids = []
    for step in range(4):
        ids.append(client.api("forward_backward", a.body(forward_backward_input=loss_input([datum(TEXT)]))))
        ids.append(client.api("optim_step", a.body(adam_params={"learning_rate": 1e-2, "eps": 1e-8}, expect_step=step)))
    ahead = [client.result(reply.json["request_id"]) for reply in ids]
    for step in range(4):
        assert b.forward_backward([datum(TEXT)]) == ahead[2 * step]
        assert b.optim_step()["metrics"] == ahead[2 * step + 1]["metrics"]


def fence(run: str, token: int) -> dict[str, str]:
    return {"X-Rolldeck-Run": run, "X-Rolldeck-Fence": str(token)}


def test_an_older_holder_is_fenced(client):
    model = client.model(headers=fence("run-a", 5))
    body = forward_backward(model, 1)
    assert client.api("forward_backward", body, fence("run-a", 7)).status == 200
    for headers in (fence("run-a", 6), fence("run-a", 5), fence("run-b", 9), {}):
        for path, payload in [
            ("/api/v1/optim_step", {"model_id": model.id, "seq_id": 2, "adam_params": {}}),
            ("/api/v1/save_weights", {"model_id": model.id, "seq_id": 2, "path": "x"}),
            ("/api/v1/unload_model", {"model_id": model.id}),
            ("/ext/v1/zero_grad", {"model_id": model.id}),
            ("/ext/v1/cancel", {"model_id": model.id}),
        ]:
            refused = client.post(path, payload, headers)
            assert (refused.status, refused.json["code"]) == (409, "fenced"), (path, headers)
    step = {"model_id": model.id, "seq_id": 2, "adam_params": {}}
    assert client.api("optim_step", step, fence("run-a", 7)).status == 200
    assert client.api("optim_step", step, {"X-Rolldeck-Run": "run-a"}).status == 422


def test_fences_outlive_the_process(tmp_path, model_root):
    with WorkerProcess(tmp_path, model_root) as process, process.client() as client:
        client.model(headers=fence("run-a", 5))
    with WorkerProcess(tmp_path, model_root) as process, process.client() as client:
        body = {"session_id": client.session(), "base_model": "tiny", "lora_config": {"rank": 0}}
        assert client.api("create_model", body, fence("run-a", 4)).json["code"] == "fenced"
        assert client.api("create_model", body, fence("run-a", 5)).status == 200


def test_cancelled_training_leaves_no_partial_gradient(client):
    model, twin = client.model(), client.model()
    rows = [datum(TEXT) for _ in range(2000)]
    body = model.body(forward_backward_input=loss_input(rows, config={"micro_batch_tokens": 64}))
    request_id = client.api("forward_backward", body).json["request_id"]
    assert client.post("/ext/v1/cancel", {"request_id": request_id}).json == {"cancelled": 1}
    failed = client.result(request_id)
    assert (failed.status, failed.json["code"]) == (409, "cancelled")
    assert model.state()["accumulated_datums"] == 0
    for m in (model, twin):
        m.forward_backward([datum(TEXT)])
    assert model.optim_step()["metrics"] == twin.optim_step()["metrics"]


def test_a_closed_connection_cancels_its_sample(client, worker):
    session = client.model().serve()["sampling_session_id"]
    body = {**sample_body(TEXT[:9], session, max_tokens=110), "num_samples": 1000}

    def in_progress() -> float:
        text = client.send("GET", "/ext/v1/metrics").body.decode()
        return float(text.split("\nrolldeck_gpu_worker_samples_in_progress ")[1].split()[0])

    other = worker.client()
    other.connection.request("POST", "/ext/v1/sample", json.dumps(body), other.headers)
    while in_progress() != 1:
        time.sleep(0.01)
    other.connection.close()
    deadline = time.monotonic() + 30
    while in_progress() != 0 or "active_sequences 0" not in client.send("GET", "/ext/v1/metrics").body.decode():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    text = client.send("GET", "/ext/v1/metrics").body.decode()
    assert float(text.split("\nrolldeck_gpu_worker_sequences_total ")[1].split()[0]) < 1000


def test_a_cancelled_asample_reports_it(client):
    session = client.model().serve()["sampling_session_id"]
    body = {**sample_body(TEXT[:9], session, max_tokens=110), "num_samples": 1000, "seq_id": 77}
    request_id = client.api("asample", body).json["request_id"]
    assert client.post("/ext/v1/cancel", {"request_id": request_id}).json == {"cancelled": 1}
    failed = client.result(request_id)
    assert (failed.status, failed.json["code"]) == (409, "cancelled")


def test_backpressure(tmp_path, model_root):
    with WorkerProcess(tmp_path, model_root, "--max-waiting", "2") as process, process.client() as client:
        session = client.model().serve()["sampling_session_id"]
        body = {**sample_body(TEXT[:9], session, max_tokens=110), "num_samples": 1000}
        accepted = [client.api("asample", {**body, "seq_id": n}) for n in range(2)]
        assert [reply.status for reply in accepted] == [200, 200]
        refused = client.post("/ext/v1/sample", body)
        assert (refused.status, refused.json["code"], refused.headers["retry-after"]) == (429, "busy", "1")
        for reply in accepted:
            client.post("/ext/v1/cancel", {"request_id": reply.json["request_id"]})
        assert client.post("/ext/v1/sample", sample_body(TEXT[:9], session)).status == 200


def test_a_silent_session_is_saved_and_unloaded(tmp_path, model_root):
    with WorkerProcess(tmp_path, model_root, "--session-lease-s", "0.6") as process, process.client() as client:
        model = client.model()
        model.forward_backward([datum(TEXT)])
        model.optim_step()
        deadline = time.monotonic() + 30
        while client.api("get_info", {"model_id": "none"}).status and not _own_checkpoints(client, model):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        path = _own_checkpoints(client, model)[0]
        assert client.api("get_info", {"model_id": model.id}).json["code"] == "unknown_model"
        again = client.model()
        assert again.call("load_weights", path=path, optimizer=True)["step"] == 1


def _own_checkpoints(client, model) -> list[str]:
    reply = client.send("GET", f"/api/v1/training_runs/{model.id}/checkpoints").json
    return [c["tinker_path"] for c in reply["checkpoints"] if "expired-1" in c["tinker_path"]]


def test_results_that_are_no_longer_kept_are_gone():
    async def scenario() -> None:
        table = FutureTable("boot", budget_bytes=100)
        pending = table.create("m")
        entries = [table.create("m") for _ in range(4)]
        for entry in entries:
            table.settle(entry, b"x" * 40, None)
        assert table.pending_of("m") == [pending]
        assert [table.has(entry.request_id) for entry in entries] == [False, False, True, True]
        with pytest.raises(WorkerError) as caught:
            table.get(entries[0].request_id)
        assert caught.value.status == 410

    asyncio.run(scenario())
