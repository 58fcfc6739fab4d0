"""The engine vllm against a double of that server: what is asked, which weights serve, and what happens when they can't."""

from __future__ import annotations

import threading

import numpy as np
import pytest
import torch
from testing.vllm_double import VllmDouble, share_bytes
from tiny_model import CPU, finish, request, rows, tiny_trainer, tiny_weights
from worker_process import WorkerProcess, datum, sample_body

from rolldeck_gpu_worker import vllm_engine
from rolldeck_gpu_worker.adamw import AdamParams
from rolldeck_gpu_worker.batch import BatchLimits
from rolldeck_gpu_worker.engine import EngineTask, SampleJob
from rolldeck_gpu_worker.errors import WorkerError
from rolldeck_gpu_worker.sampling import SamplingParams
from rolldeck_gpu_worker.snapshots import Snapshot
from rolldeck_gpu_worker.vllm_engine import VllmEngine, VllmServer, read_choice

ORDER = ["/pause?mode=wait", "/start_weight_update", "/update_weights", "/finish_weight_update"]
ORDER += ["/reset_prefix_cache", "/resume"]


@pytest.fixture
def double():
    with VllmDouble() as double:
        yield double


@pytest.fixture
def engine(double):
    engine = VllmEngine(CPU, BatchLimits(8, 4096), 0, VllmServer(double.url), share_bytes)
    engine.start()
    yield engine
    double.held.set()
    engine.stop(10)


class Asked:
    """A sample under way."""

    def __init__(self, engine: VllmEngine, snapshot: Snapshot, prompt: list[int], samples: int = 1, **params):
        self.done = threading.Event()
        self.result, self.error = None, None
        defaults = {"max_tokens": 8, "temperature": 1.0, "top_p": 1.0, "top_k": -1, "seed": 3}
        settings = SamplingParams(**(defaults | {"stop_tokens": frozenset(), "stop_strings": ()} | params))
        self.job = SampleJob(snapshot, np.asarray(prompt, np.int64), settings, samples, self._ended)
        engine.submit(self.job)

    def _ended(self, result, error) -> None:
        self.result, self.error = result, error
        self.done.set()

    def wait(self):
        assert self.done.wait(60)
        return self.result


def test_a_sample_is_token_in_and_token_out(double, engine):
    asked = Asked(engine, Snapshot("m", 7, tiny_weights()), [1, 2, 3], samples=2).wait()
    first, second = asked["sequences"]
    assert len(first["tokens"]) == len(first["logprobs"]) == 8
    assert first["logprobs"] == [round(-1 - token / 512, 7) for token in first["tokens"]]
    assert first != second, "samples of one prompt have seeds of their own"
    assert (asked["weight_version"], first["stop_reason"]) == (7, "length")
    assert engine.counters.sampled_tokens == 16
    stop = first["tokens"][2]
    again = Asked(engine, Snapshot("m", 7, tiny_weights()), [1, 2, 3], stop_tokens=frozenset([stop])).wait()
    assert again["sequences"][0]["stop_reason"] == "stop"
    assert again["sequences"][0]["tokens"][-1] == stop


def test_weights_are_handed_over_once_and_as_they_are(double, engine, monkeypatch):
    monkeypatch.setattr(vllm_engine, "_UPDATE_BYTES", 20_000)
    weights = tiny_weights()
    snapshot = Snapshot("m", 0, weights)
    for prompt in ([1], [2], [3]):
        Asked(engine, snapshot, prompt).wait()
    assert double.told.count("/update_weights") > 1
    assert double.told.count("/pause?mode=wait") == 1
    other = VllmDouble()
    for names, tensors in vllm_engine.in_parts(weights.hf_views()):
        other._take(
            {
                "names": names,
                "dtype_names": ["float32"] * len(names),
                "shapes": [list(tensor.shape) for tensor in tensors],
                "ipc_handles_pickled": share_bytes(tensors),
            }
        )
    assert double.digest == other.digest
    other._http.server_close()


def test_after_an_update_the_new_weights_serve(double, engine):
    trainer, data = tiny_trainer(), rows([9, 20])
    before = Snapshot("m", 0, trainer.weights.snapshot())
    old = Asked(engine, before, [1, 2]).wait()
    finish(trainer.forward_backward(request(data)))
    trainer.optim_step(AdamParams(1e-2), None)
    after = Snapshot("m", 1, trainer.weights.snapshot())
    new = Asked(engine, after, [1, 2]).wait()
    assert new["weight_version"] == 1 and new["sequences"] != old["sequences"]
    assert double.told == ["/init_weight_transfer_engine", *ORDER, *ORDER]
    # Prefixes of other weights are told apart by their salt too.
    assert len(set(double.salts)) == 2
    # An older session goes back to its own weights.
    assert Asked(engine, before, [1, 2]).wait()["sequences"] == old["sequences"]


def test_a_hand_over_waits_for_what_is_in_flight(double, engine):
    """A sample is of one set of weights: the double refuses to be paused while it samples."""
    first, second = (Snapshot("m", version, tiny_weights(version)) for version in (0, 1))
    Asked(engine, first, [9]).wait()
    double.held.clear()
    under_way = [Asked(engine, first, [at]) for at in range(1, 5)]
    late = Asked(engine, second, [1])
    while double.in_flight < 4:
        assert not late.done.is_set()
    assert "/pause?mode=wait" not in double.told[len(ORDER) + 1 :]
    double.held.set()
    assert [asked.wait()["weight_version"] for asked in under_way] == [0, 0, 0, 0]
    assert late.wait()["weight_version"] == 1


@pytest.mark.parametrize("path", ORDER)
def test_a_hand_over_that_fails_serves_nobody_until_one_succeeds(double, engine, path):
    double.fails.add(path)
    snapshot = Snapshot("m", 0, tiny_weights())
    failed = Asked(engine, snapshot, [1])
    failed.wait()
    assert failed.error.code == "internal" and path in failed.error.detail
    double.fails.clear()
    assert Asked(engine, snapshot, [1]).wait()["weight_version"] == 0


def test_what_is_trained_before_a_commit_is_done_before_it(double, engine):
    seen = []
    done = threading.Event()
    weights = tiny_weights()
    engine.run(EngineTask("train", lambda: iter_once(seen), lambda *_: done.set()))
    Asked(engine, Snapshot("m", 0, weights), [1]).wait()
    assert done.is_set() and seen == ["trained"]


def iter_once(seen: list):
    seen.append("trained")
    yield


@pytest.mark.parametrize(
    ("params", "field"),
    [
        ({"top_p": 0.9}, "sampling_params.top_p"),
        ({"top_k": 5}, "sampling_params.top_k"),
        ({"temperature": 0.0}, "sampling_params.temperature"),
        ({"stop_strings": (b"x",)}, "sampling_params.stop"),
    ],
)
def test_what_it_can_not_report_as_the_trainer_computes_it_is_refused(engine, params, field):
    with pytest.raises(WorkerError) as caught:
        Asked(engine, Snapshot("m", 0, tiny_weights()), [1], **params)
    assert (caught.value.code, caught.value.field) == ("bad_input", field)


def test_another_version_is_refused():
    with VllmDouble(version="0.32.0") as double:
        engine = VllmEngine(CPU, BatchLimits(8, 4096), 0, VllmServer(double.url), share_bytes)
        with pytest.raises(WorkerError, match="vLLM 0.33.0 is needed, the server says 0.32.0"):
            engine.start()


@pytest.mark.parametrize("url", ["http://10.0.0.1:8000", "https://127.0.0.1:8000", "http://127.0.0.1", "nonsense"])
def test_only_loopback_is_spoken_to(url):
    with pytest.raises(ValueError, match="loopback|is needed"):
        VllmServer(url)


def test_a_server_that_is_gone_is_said_to_be():
    with VllmDouble() as double:
        server = VllmServer(double.url)
    with pytest.raises(WorkerError, match="does not answer") as caught:
        server.call("GET", "/version")
    assert caught.value.status == 503


WHOLE = {
    "finish_reason": "stop",
    "token_ids": [5, 6],
    "logprobs": {"content": [{"token_id": 5, "logprob": -1.0}, {"token_id": 6, "logprob": -2.0}]},
    "weight_versions": [{"version": "3", "start": 0, "end": 2}],
}


@pytest.mark.parametrize(
    "change",
    [
        {"token_ids": [5]},
        {"token_ids": []},
        {"logprobs": None},
        {"weight_versions": None},
        {"weight_versions": [{"version": "3", "start": 0, "end": 1}, {"version": "4", "start": 1, "end": 2}]},
        {"finish_reason": "abort"},
    ],
    ids=str,
)
def test_an_answer_that_can_not_be_trained_on_is_refused(change):
    assert read_choice({"choices": [WHOLE]}, "3")["tokens"] == [5, 6]
    with pytest.raises(WorkerError):
        read_choice({"choices": [WHOLE | change]}, "3")


def test_weights_go_over_in_the_type_that_samples(double, engine):
    snapshot = tiny_weights()
    snapshot.compute = torch.bfloat16
    assert Asked(engine, Snapshot("m", 0, snapshot.snapshot()), [1]).wait()["sequences"]
    assert double.dtypes == {"bfloat16"}


PRELUDE = """
from rolldeck_gpu_worker import vllm_engine
from testing.vllm_double import share_bytes
vllm_engine.VllmEngine.__init__.__defaults__ = (share_bytes,)
"""


def test_a_worker_samples_by_it_and_serves_what_it_saved(tmp_path, model_root, double):
    flags = ("--engine", "vllm", "--vllm-url", double.url)
    with WorkerProcess(tmp_path, model_root, *flags, prelude=PRELUDE) as worker, worker.client() as client:
        assert client.send("GET", "/ext/v1/info").json["engine"] == "vllm"
        model = client.model()
        session = model.serve()["sampling_session_id"]
        # Handed over by then, not with the first sample.
        assert double.told[-1] == "/resume"
        first = client.post("/ext/v1/sample", sample_body([1, 2], session)).json
        model.forward_backward([datum([1, 2, 3, 4])])
        model.optim_step()
        later = model.serve()["sampling_session_id"]
        second = client.post("/ext/v1/sample", sample_body([1, 2], later)).json
        assert (first["weight_version"], second["weight_version"]) == (0, 1)
        assert first["sequences"] != second["sequences"]
        refused = client.post("/ext/v1/sample", sample_body([1, 2], later, top_p=0.5))
        assert (refused.status, refused.json["field"]) == (422, "sampling_params.top_p")
        double.fails.add("/update_weights")
        failed = model.serve()
        assert failed["code"] == "internal" and "/update_weights" in failed["detail"]


def test_its_flags_belong_together(tmp_path, model_root):
    with pytest.raises(RuntimeError, match="belong together"):
        WorkerProcess(tmp_path, model_root, "--engine", "vllm")
