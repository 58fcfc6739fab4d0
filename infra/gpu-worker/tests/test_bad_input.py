"""Bad input is refused before anything is queued, and the answer names the field."""

from __future__ import annotations

import json

import pytest
from worker_process import datum, encoded, loss_input, sample_body, tensor

ROW = [256, 1, 2, 3, 259]
ZEROS = [0.0] * 4


@pytest.fixture(scope="module")
def open_model(worker):
    with worker.client() as client:
        model = client.model()
        model.session = model.serve()["sampling_session_id"]
        yield model


def with_tensor(**inputs: dict) -> list:
    row = datum(ROW)
    row["loss_fn_inputs"] |= inputs
    return [row]


LOSSES = [
    ("empty data", loss_input([]), "forward_backward_input.data"),
    ("no data", {"loss_fn": "cross_entropy"}, "forward_backward_input.data"),
    ("not an object", [1], "forward_backward_input"),
    ("unknown key", {**loss_input([datum(ROW)]), "los": 1}, "forward_backward_input"),
    ("unknown loss", loss_input([datum(ROW)], "sapo"), "loss_fn"),
    ("no loss", {"data": [datum(ROW)]}, "loss_fn"),
    ("unknown setting", loss_input([datum(ROW)], config={"clip": 1}), "loss_fn_config.clip"),
    ("setting out of range", loss_input([datum(ROW)], config={"temperature": 0}), "loss_fn_config.temperature"),
    (
        "setting not a number",
        loss_input([datum(ROW)], config={"temperature": "x"}),
        "forward_backward_input.loss_fn_config",
    ),
    (
        "token too large",
        loss_input([datum([1, 2, 260])]),
        "forward_backward_input.data[0].loss_fn_inputs.target_tokens",
    ),
    ("token negative", loss_input([datum([-1, 2, 3])]), "forward_backward_input.data[0].model_input"),
    (
        "token past int64",
        loss_input([datum([2**70, 2, 3])]),
        "forward_backward_input.data[0].model_input.chunks[0].tokens",
    ),
    (
        "token a fraction",
        loss_input([datum([1.5, 2, 3])]),
        "forward_backward_input.data[0].model_input.chunks[0].tokens",
    ),
    ("token a text", loss_input([datum(["1", 2, 3])]), "forward_backward_input.data[0].model_input.chunks[0].tokens"),
    (
        "tokens nested",
        loss_input([datum([[1], [2], [3]])]),
        "forward_backward_input.data[0].model_input.chunks[0].tokens",
    ),
    (
        "tokens ragged",
        loss_input([datum([[1], [2, 3], 3])]),
        "forward_backward_input.data[0].model_input.chunks[0].tokens",
    ),
    (
        "tokens true",
        loss_input([datum([True, False, True])]),
        "forward_backward_input.data[0].model_input.chunks[0].tokens",
    ),
    ("empty row", loss_input([datum([1])]), "forward_backward_input.data[0].model_input"),
    ("too long", loss_input([datum([1] * 130)]), "forward_backward_input.data[0].model_input"),
    (
        "image chunk",
        loss_input([{"model_input": {"chunks": [{"type": "image"}]}, "loss_fn_inputs": {}}]),
        "forward_backward_input.data[0].model_input.chunks[0].type",
    ),
    (
        "no chunks",
        loss_input([{"model_input": {}, "loss_fn_inputs": {}}]),
        "forward_backward_input.data[0].model_input.chunks",
    ),
    (
        "unequal lengths",
        loss_input(with_tensor(weights=tensor([1.0]))),
        "forward_backward_input.data[0].loss_fn_inputs.weights.data",
    ),
    (
        "wrong shape",
        loss_input(with_tensor(weights={**tensor([1.0] * 4), "shape": [2, 2]})),
        "forward_backward_input.data[0].loss_fn_inputs.weights.shape",
    ),
    (
        "wrong dtype",
        loss_input(with_tensor(target_tokens=tensor([1, 2, 3, 4]))),
        "forward_backward_input.data[0].loss_fn_inputs.target_tokens.dtype",
    ),
    (
        "too large a number",
        loss_input(with_tensor(weights=tensor([1e39, 1, 1, 1]))),
        "forward_backward_input.data[0].loss_fn_inputs.weights.data",
    ),
    (
        "null",
        loss_input(with_tensor(weights=tensor([None, 1, 1, 1]))),
        "forward_backward_input.data[0].loss_fn_inputs.weights.data",
    ),
    (
        "numbers ragged",
        loss_input(with_tensor(weights=tensor([[1.0], [1.0, 1.0], 1, 1]))),
        "forward_backward_input.data[0].loss_fn_inputs.weights.data",
    ),
    (
        "setting past floats",
        loss_input([datum(ROW, logprobs=ZEROS, advantages=ZEROS)], "ppo", {"entropy_coef": 10**400}),
        "loss_fn_config.entropy_coef",
    ),
    (
        "unknown tensor",
        loss_input(with_tensor(mask=tensor(ZEROS))),
        "forward_backward_input.data[0].loss_fn_inputs.mask",
    ),
    (
        "RL tensor in CE",
        loss_input(with_tensor(advantages=tensor(ZEROS))),
        "forward_backward_input.data[0].loss_fn_inputs.advantages",
    ),
    (
        "missing advantages",
        loss_input([datum(ROW, logprobs=ZEROS)], "ppo"),
        "forward_backward_input.data[0].loss_fn_inputs.advantages",
    ),
    (
        "kl without weights",
        loss_input([datum(ROW, logprobs=ZEROS, advantages=ZEROS)], "ppo", {"kl_coef": 0.1}),
        "forward_backward_input.loss_fn_config.kl_coef",
    ),
    (
        "kl without reference",
        loss_input([datum(ROW, logprobs=ZEROS, advantages=ZEROS, weights=ZEROS)], "ppo", {"kl_coef": 0.1}),
        "forward_backward_input.loss_fn_config.kl_coef",
    ),
    (
        "clip bounds crossed",
        loss_input([datum(ROW, logprobs=ZEROS, advantages=ZEROS)], "ppo", {"clip_low_threshold": 2}),
        "loss_fn_config.clip_low_threshold",
    ),
    (
        "dual clip at 1",
        loss_input([datum(ROW, logprobs=ZEROS, advantages=ZEROS)], "ppo", {"dual_clip_c": 1}),
        "loss_fn_config.dual_clip_c",
    ),
]


@pytest.mark.parametrize(("asked", "field"), [row[1:] for row in LOSSES], ids=[row[0] for row in LOSSES])
def test_losses(client, open_model, asked, field):
    body = {"model_id": open_model.id, "seq_id": open_model.seq + 1, "forward_backward_input": asked}
    refused = client.api("forward_backward", body)
    assert (refused.status, refused.json["code"], refused.json["field"]) == (422, "bad_input", field)


SAMPLES = [
    ({"prompt": encoded([])}, "prompt"),
    ({"prompt": encoded([260])}, "prompt"),
    ({"prompt": encoded([1] * 128)}, "prompt"),
    ({"prompt": {"chunks": []}}, "prompt.chunks"),
    ({"num_samples": 0}, "num_samples"),
    ({"num_samples": 1.5}, "num_samples"),
    ({"sampling_params": None}, "sampling_params"),
    ({"sampling_params": {}}, "sampling_params.max_tokens"),
    ({"sampling_params": {"max_tokens": 0}}, "sampling_params.max_tokens"),
    ({"sampling_params": {"max_tokens": 125}}, "sampling_params.max_tokens"),
    ({"sampling_params": {"max_tokens": 1, "temperature": -1}}, "sampling_params.temperature"),
    ({"sampling_params": {"max_tokens": 1, "temperature": 10**400}}, "sampling_params.temperature"),
    ({"sampling_params": {"max_tokens": 1, "top_p": 0}}, "sampling_params.top_p"),
    ({"sampling_params": {"max_tokens": 1, "stop": [[1], [2, 3]]}}, "sampling_params.stop"),
    ({"sampling_params": {"max_tokens": 1, "top_k": -2}}, "sampling_params.top_k"),
    ({"sampling_params": {"max_tokens": 1, "seed": "x"}}, "sampling_params.seed"),
    ({"sampling_params": {"max_tokens": 1, "stop": [999]}}, "sampling_params.stop"),
    ({"sampling_params": {"max_tokens": 1, "stop": ["a", 1]}}, "sampling_params.stop"),
    ({"sampling_params": {"max_tokens": 1, "best_of": 2}}, "sampling_params.best_of"),
    ({"topk_sample_logprobs": 2}, "topk_sample_logprobs"),
    ({"prompt_logprobs_last_n": 4}, "prompt_logprobs_last_n"),
    ({"sampling_session_id": None}, "sampling_session_id"),
    ({"sampling_session_id": None, "model_path": "tinker://../weights/x"}, "model_path"),
    ({"sampling_session_id": None, "base_model": "../tiny"}, "base_model"),
    ({"sampling_session_id": None, "base_model": "foreign"}, "base_model"),
]


@pytest.mark.parametrize(("change", "field"), SAMPLES)
def test_samples(client, open_model, change, field):
    body = sample_body([1, 2, 3, 4], open_model.session) | change
    for path in ("/ext/v1/sample", "/api/v1/asample"):
        refused = client.post(path, body)
        assert (refused.status, refused.json["code"], refused.json["field"]) == (422, "bad_input", field)


MODELS = [
    ({"base_model": "missing"}, "base_model"),
    ({"base_model": "foreign"}, "base_model"),
    ({"base_model": "tiny/../tiny"}, "base_model"),
    ({"base_model": "/etc"}, "base_model"),
    ({"base_model": 3}, "base_model"),
    ({"lora_config": {"rank": 1025}}, "lora_config.rank"),
    ({"lora_config": {"rank": -1}}, "lora_config.rank"),
    ({"lora_config": {"rank": 2.0}}, "lora_config.rank"),
    ({"lora_config": {"rank": 2, "alpha": 1}}, "lora_config.alpha"),
    ({"lora_config": {"rank": 2, "train_mlp": 1}}, "lora_config.train_mlp"),
    ({"lora_config": {"rank": 2, **dict.fromkeys(["train_attn", "train_mlp", "train_unembed"], False)}}, "lora_config"),
    ({"optimizer_config": {"type": "dimuon"}}, "optimizer_config.type"),
    ({"user_metadata": {"a": 1}}, "user_metadata.a"),
    ({"lora_config": {"rank": 0, "seed": -1}}, "lora_config.seed"),
    ({"model_seq_id": "0"}, "model_seq_id"),
]


@pytest.mark.parametrize(("change", "field"), MODELS)
def test_models(client, change, field):
    body = {"session_id": client.session(), "base_model": "tiny", "lora_config": {"rank": 0}} | change
    refused = client.api("create_model", body)
    assert (refused.status, refused.json["field"]) == (422, field)


STEPS = [
    ("optim_step", {"adam_params": {"lr": 1}}, "adam_params.lr"),
    ("optim_step", {"adam_params": {"beta1": 1.0}}, "adam_params.beta1"),
    ("optim_step", {"adam_params": {"learning_rate": None}}, "adam_params.learning_rate"),
    ("optim_step", {"adam_params": {"learning_rate": 10**400}}, "adam_params.learning_rate"),
    # A weight without a gradient would become 0 ÷ 0.
    ("optim_step", {"adam_params": {"eps": 0}}, "adam_params.eps"),
    ("optim_step", {"adam_params": []}, "adam_params"),
    ("optim_step", {"expect_step": -1}, "expect_step"),
    ("optim_step", {"seq_id": 0}, "seq_id"),
    ("optim_step", {"seq_id": None}, "seq_id"),
    ("save_weights", {"path": "../x"}, "path"),
    ("save_weights", {"path": "a b"}, "path"),
    ("save_weights", {"path": "x" * 256}, "path"),
    ("save_weights", {"path": "x", "overwrite": 1}, "overwrite"),
    ("save_weights", {"path": "x", "ttl_seconds": 0}, "ttl_seconds"),
    ("save_weights_for_sampler", {"path": "x/y"}, "path"),
    ("save_weights_for_sampler", {"kind": "inflight"}, "kind"),
    ("load_weights", {"path": "weights/x"}, "path"),
    ("load_weights", {"path": "tinker://m/other/x"}, "path"),
]


@pytest.mark.parametrize(("name", "change", "field"), STEPS)
def test_steps(client, open_model, name, change, field):
    refused = client.api(name, {"model_id": open_model.id, "seq_id": open_model.seq + 1} | change)
    assert (refused.status, refused.json["field"]) == (422, field)


def test_an_all_masked_row_is_accepted_and_counted(client):
    model = client.model()
    result = model.forward_backward([datum(ROW, weights=ZEROS), datum(ROW)])
    assert result["metrics"]["all_masked_datums:sum"] == 1
    masked = datum(ROW, logprobs=[-1e30] * 4, advantages=ZEROS)
    result = model.forward_backward([masked], "ppo")
    assert (result["metrics"]["loss:sum"], result["metrics"]["trained_tokens:sum"]) == (0, 0)


@pytest.mark.parametrize("raw", [b"", b"{", b"[1]", b"null", b'{"a": NaN}', b"\xff\xfe", b"[" * 100_000])
def test_bodies_that_are_not_json_objects(client, raw):
    refused = client.send("POST", "/api/v1/get_info", raw)
    assert refused.status == (404 if raw == b"" else 422)


def test_http_limits(client, worker):
    assert client.send("GET", "/api/v1/nothing").status == 404
    assert client.send("GET", "/api/v1/asample").status == 405
    for headers, status in [
        ({"Content-Length": str(65 * 1024 * 1024)}, 413),
        ({"Content-Encoding": "gzip", "Content-Length": "0"}, 415),
        ({"Transfer-Encoding": "chunked"}, 411),
        ({"X-Long": "x" * 40_000}, 431),
    ]:
        with worker.client() as other:
            other.connection.putrequest("POST", "/api/v1/telemetry")
            for name, value in (other.headers | headers).items():
                other.connection.putheader(name, value)
            other.connection.endheaders()
            assert other.connection.getresponse().status == status


def test_large_bodies_are_read(client):
    padding = json.dumps({"events": "x" * 5_000_000}).encode()
    assert client.send("POST", "/api/v1/telemetry", padding, {"Expect": "100-continue"}).status == 200
