"""The protocol's binary messages say what its JSON says."""

from __future__ import annotations

import json
import struct

import numpy as np
import pytest
from lesson import TEXT
from worker_process import datum, loss_input, sample_body

from rolldeck_gpu_worker.errors import WorkerError
from rolldeck_gpu_worker.proto_wire import bytes_field, double_field, fields, number_field, signed, text_field
from rolldeck_gpu_worker.tinker_proto import PROTO_TYPE, decode_forward_backward, encode_result



def proto_tensor(tensor: dict) -> bytes:
    integers = tensor["dtype"] == "int64"
    raw = np.asarray(tensor["data"], "<i8" if integers else "<f4").tobytes()
    shape = b"".join(number_field(0, n)[1:] for n in tensor["shape"])
    return bytes_field(1, raw) + number_field(3, 2 if integers else 1) + bytes_field(4, shape)


def proto_datum(row: dict) -> bytes:
    out = b""
    for chunk in row["model_input"]["chunks"]:
        tokens = np.asarray(chunk["tokens"], "<i4").tobytes()
        out += bytes_field(1, bytes_field(1, bytes_field(1, tokens)))
    for name, tensor in row["loss_fn_inputs"].items():
        out += bytes_field(2, text_field(1, name) + bytes_field(2, proto_tensor(tensor)))
    return out


def proto_request(model_id: str, seq_id: int, asked: dict, forward_only: bool = False) -> bytes:
    out = text_field(1, model_id) + number_field(2, seq_id)
    for row in asked["data"]:
        out += bytes_field(3, proto_datum(row))
    out += text_field(4, asked["loss_fn"])
    for key, value in (asked.get("loss_fn_config") or {}).items():
        out += bytes_field(5, text_field(1, key) + double_field(2, value))
        out += bytes_field(7, text_field(1, key) + bytes_field(2, double_field(1, value)))
    return out + number_field(6, int(forward_only))


def send(client, message: bytes):
    return client.send("POST", "/api/v1/forward_backward", message, {"Content-Type": PROTO_TYPE})


def retrieve(client, request_id: str):
    reply = client.api("retrieve_future", {"request_id": request_id}, {"Accept": PROTO_TYPE})
    assert (reply.status, reply.headers["content-type"]) == (200, PROTO_TYPE)
    return reply.body


def outputs_of(message: bytes) -> tuple[dict, dict]:
    """(values of every datum by field, metrics) of a ForwardBackwardOutput."""
    found, metrics = {}, {}
    for number, value in fields(message, "output"):
        if number == 3:
            entry = dict(fields(value, "metric"))
            metrics[entry[1].decode()] = struct.unpack("<d", entry[2])[0]
        if number != 2:
            continue
        for part, field in fields(value, "record"):
            if part == 2:
                entry = dict(fields(field, "field"))
                tensor = dict(fields(entry[2], "tensor"))
                ends = (np.frombuffer(tensor[2], "<i8") // 4).tolist()
                values = np.frombuffer(tensor[1], "<f4")
                found[entry[1].decode()] = [values[a:b].tolist() for a, b in zip(ends, ends[1:], strict=False)]
    return found, metrics


@pytest.mark.parametrize("value", [0, 1, 127, 128, 300, 2**31 - 1, -1, -(2**31), 2**63 - 1])
def test_numbers_of_every_length(value):
    assert signed(next(fields(number_field(3, value), "x"))[1]) == value


def test_the_answer_is_that_of_json(client):
    rl = datum(TEXT, logprobs=[-5.0] * 21, advantages=[0.5] * 21, weights=[0.0] * 9 + [1.0] * 12)
    for rows, loss, config in [
        ([datum(TEXT), datum(TEXT[:7])], "cross_entropy", None),
        ([rl], "ppo", {"clip_low_threshold": 0.7, "temperature": 0.5}),
    ]:
        asked = loss_input(rows, loss, config)
        by_json, by_proto = client.model(seed=4), client.model(seed=4)
        expected = by_json.forward_backward(rows, loss, config)
        message = proto_request(by_proto.id, 1, asked)
        first = send(client, message)
        assert first.status == 200, first.body
        # The same bytes again are a retry.
        assert send(client, message).json == first.json
        values, metrics = outputs_of(retrieve(client, first.json["request_id"]))
        assert metrics == pytest.approx(expected["metrics"])
        for name in ("logprobs", "elementwise_loss"):
            for got, output in zip(values[name], expected["loss_fn_outputs"], strict=True):
                assert got == pytest.approx(output[name]["data"], abs=1e-6)
        by_proto.seq = 1
        assert by_proto.optim_step()["metrics"] == by_json.optim_step()["metrics"]


def test_forward_only_leaves_no_gradient(client):
    model = client.model()
    sent = send(client, proto_request(model.id, 1, loss_input([datum(TEXT)]), forward_only=True))
    _, metrics = outputs_of(retrieve(client, sent.json["request_id"]))
    assert metrics["loss:sum"] > 0
    assert model.state()["accumulated_datums"] == 0


def test_a_sample_in_binary_is_that_in_json(client):
    session = client.model().serve()["sampling_session_id"]
    body = sample_body(TEXT[:9], session) | {"num_samples": 2, "prompt_logprobs": True, "topk_prompt_logprobs": 3}
    promise = client.api("asample", body).json
    assert len(set(promise["sample_sequence_ids"])) == 2
    expected = client.result(promise["request_id"])
    parts = list(fields(retrieve(client, promise["request_id"]), "sample"))
    sequences = [dict(fields(value, "sequence")) for number, value in parts if number == 1]
    for got, sequence in zip(sequences, expected["sequences"], strict=True):
        assert np.frombuffer(got[2], "<i4").tolist() == sequence["tokens"]
        assert np.frombuffer(got[3], "<f4").tolist() == pytest.approx(sequence["logprobs"], abs=1e-6)
        assert got.get(1, 0) == (1 if sequence["stop_reason"] == "length" else 0)
    scored = np.frombuffer(dict(parts)[2], "<f4")
    assert np.isnan(scored[0]) and scored[1:].tolist() == pytest.approx(expected["prompt_logprobs"][1:], abs=1e-6)
    top = dict(fields(dict(parts)[3], "top"))
    assert (top[3], top[4]) == (3, 9)
    ids = np.frombuffer(top[1], "<i4").reshape(9, 3)
    assert ids[1:].tolist() == [[token for token, _ in row] for row in expected["topk_prompt_logprobs"][1:]]
    assert np.frombuffer(top[2], "<f4")[:3].tolist() == [-99999.0] * 3


def test_results_without_a_message_stay_json(client):
    model = client.model()
    sent = client.api("optim_step", model.body(adam_params={"learning_rate": 0.0})).json
    reply = client.api("retrieve_future", {"request_id": sent["request_id"]}, {"Accept": PROTO_TYPE})
    assert reply.json["step"] == 1
    assert encode_result(json.dumps({"path": "x"}).encode()) is None


ROW = proto_datum(datum(TEXT[:5]))
TARGETS = text_field(1, "target_tokens")
MALFORMED = {
    "not a message": (b"\xff\xff\xff\xff", "body"),
    "cut": (bytes_field(3, ROW)[:-3], "body"),
    "an endless number": (b"\x10" + b"\xff" * 12, "body"),
    "a group": (b"\x0b", "body"),
    "a datum that is a number": (number_field(3, 1), "forward_backward_input.data[0]"),
    "half a token": (
        bytes_field(3, bytes_field(1, bytes_field(1, bytes_field(1, b"abc")))),
        "forward_backward_input.data[0].model_input.chunks[0].tokens",
    ),
    "a sparse tensor": (
        bytes_field(3, bytes_field(2, TARGETS + bytes_field(2, bytes_field(2, b"")))),
        "forward_backward_input.data[0].loss_fn_inputs.target_tokens",
    ),
    "no dtype": (
        bytes_field(3, bytes_field(2, TARGETS + bytes_field(2, bytes_field(1, b"")))),
        "forward_backward_input.data[0].loss_fn_inputs.target_tokens.dtype",
    ),
    "a shape of many dimensions": (
        bytes_field(3, bytes_field(2, TARGETS + bytes_field(2, bytes_field(4, b"\1" * 200)))),
        "forward_backward_input.data[0].loss_fn_inputs.target_tokens.shape",
    ),
    "a loss that is not a text": (bytes_field(4, b"\xff\xfe"), "loss_fn"),
}


@pytest.mark.parametrize(("message", "field"), MALFORMED.values(), ids=MALFORMED)
def test_malformed_messages_are_refused(client, message, field):
    with pytest.raises(WorkerError) as caught:
        decode_forward_backward(message)
    assert (caught.value.code, caught.value.field) == ("bad_input", field)
    assert send(client, message).status == 422


def test_any_bytes_are_parsed_or_refused():
    rng = np.random.default_rng(0)
    whole = proto_request("m", 1, loss_input([datum(TEXT)], config={"temperature": 1.0}))
    for _ in range(2000):
        at = int(rng.integers(len(whole)))
        for message in (whole[:at], whole[:at] + rng.bytes(3) + whole[at:], rng.bytes(at)):
            try:
                decode_forward_backward(message)
            except WorkerError as error:
                assert error.code == "bad_input"


def test_an_image_or_a_text_setting_is_refused(client):
    model = client.model()
    image = bytes_field(3, bytes_field(1, bytes_field(2, b"")))
    refused = send(client, text_field(1, model.id) + number_field(2, 1) + image + text_field(4, "cross_entropy"))
    assert (refused.status, refused.json["field"]) == (422, "forward_backward_input.data[0].model_input.chunks[0].type")
    setting = bytes_field(7, text_field(1, "temperature") + bytes_field(2, text_field(2, "hot")))
    message = proto_request(model.id, 1, loss_input([datum(TEXT)])) + setting
    assert send(client, message).json["field"] == "forward_backward_input.loss_fn_config"
