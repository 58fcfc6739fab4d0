"""What a worker says of its machine: rates by phase, MFU by its formula, the driver's numbers by UUID, and nothing that is not known."""

from __future__ import annotations

import sys

import pytest
import torch
from lesson import TEXT
from testing.nvml_double import UUID, Nvml
from tiny_model import finish, request, rows, tiny_config, tiny_trainer, tiny_weights
from worker_process import datum, sample_body

from rolldeck_gpu_worker.gpu_reading import GpuReader, GpuReading, device_name, gpu_uuid
from rolldeck_gpu_worker.phases import Phase, StepRates, peak_flops, update_flops
from rolldeck_gpu_worker.weights import parameter_count



def test_rates_are_of_the_time_since_the_last_step():
    rates, update, decode = StepRates(), Phase(), Phase()
    phases = {"update": update, "decode": decode, "forward": Phase()}
    update.add(1000, 2.0, 8e9)
    decode.add(30, 0.5)
    assert rates.since_last(phases, 1e10) == {"update_tokens_per_s": 500.0, "mfu": 0.4, "decode_tokens_per_s": 60.0}
    update.add(600, 1.0, 5e9)
    update.add(0, 1.0)
    # The optimizer's time counts; what did not happen is absent, not 0.
    assert rates.since_last(phases, 1e10) == {"update_tokens_per_s": 300.0, "mfu": 0.25}
    assert rates.since_last(phases, 1e10) == {}
    update.add(10, 1.0, 5e9)
    assert rates.since_last(phases, None) == {"update_tokens_per_s": 10.0}


@pytest.mark.parametrize("tied", [True, False], ids=["tied", "untied"])
def test_operations_of_an_update(tied):
    config = tiny_config(tie_word_embeddings=tied)
    parameters = parameter_count(config)
    # What a token is multiplied with: every matrix once, and the norms, which are few.
    multiplied = parameters - (0 if tied else 260 * 32)
    attention = 6 * 2 * 4 * 8
    assert update_flops(config, parameters, [10, 3], adapted=False) == 13 * 6 * multiplied + attention * (100 + 9)
    assert update_flops(config, parameters, [10], adapted=True) == 10 * 4 * multiplied + attention * 100


@pytest.mark.parametrize(
    ("name", "dtype", "peak"),
    [
        ("NVIDIA H200", torch.bfloat16, 989e12),
        ("NVIDIA H200", torch.float32, 67e12),
        ("NVIDIA A100-SXM4-80GB", torch.bfloat16, 312e12),
        ("NVIDIA B200", torch.float32, None),
        ("NVIDIA H100 80GB HBM3 MIG 1g.10gb", torch.bfloat16, None),
        ("NVIDIA H200", torch.float16, None),
        ("NVIDIA GeForce RTX 4090", torch.bfloat16, None),
        (None, torch.bfloat16, None),
    ],
)
def test_a_peak_is_known_or_it_is_not(name, dtype, peak):
    assert peak_flops(name, dtype) == peak


def test_a_gpu_is_read_by_its_uuid():
    nvml = Nvml()
    reader = GpuReader(UUID, nvml)
    assert reader.read() == GpuReading(5 << 30, 141 << 30, 0.37, 412.5, 54)
    nvml.memory_used = 6 << 30
    assert reader.read().memory_used_bytes == 6 << 30


def test_what_the_driver_does_not_tell_is_none():
    assert GpuReader(UUID, Nvml(parted=True)).read() == GpuReading(5 << 30, 141 << 30)
    assert GpuReader("GPU-another", Nvml()).read() == GpuReading()
    assert GpuReader(UUID, Nvml(driver=False)).read() == GpuReading()
    assert GpuReader(None, Nvml()).read() == GpuReading()


def test_without_the_drivers_package_nothing_is_told(monkeypatch):
    # None in sys.modules is what an import of a missing module comes to.
    monkeypatch.setitem(sys.modules, "pynvml", None)
    assert GpuReader(UUID).read() == GpuReading()


def test_a_cpu_has_neither_uuid_nor_peak():
    cpu = torch.device("cpu")
    assert (gpu_uuid(cpu), device_name(cpu), peak_flops(device_name(cpu), torch.float32)) == (None, None, None)


def test_a_trainer_counts_what_it_passes_through():
    trainer, data = tiny_trainer(), rows([9, 20])
    finish(trainer.forward(request(data)))
    finish(trainer.forward_backward(request(data)))
    assert (trainer.forwarded.tokens, trainer.updated.tokens) == (29, 29)
    weights = tiny_weights()
    assert trainer.updated.flops == update_flops(weights.config, weights.flat.numel(), [9, 20], adapted=False)
    assert trainer.logprob_gap is None
    finish(trainer.forward(request(data, "importance_sampling")))
    assert trainer.logprob_gap > 0


def test_a_step_says_what_was_known_of_its_machine(client):
    model = client.model()
    session = model.serve()["sampling_session_id"]
    answer = client.post("/ext/v1/sample", sample_body(TEXT[:9], session)).json["sequences"][0]
    assert answer["tokens"]
    model.forward_backward([datum(TEXT)])
    told = model.optim_step()["machine"]
    # A CPU has no peak and no driver; no forward pass was asked for.
    assert sorted(told) == ["decode_tokens_per_s", "prefill_tokens_per_s", "update_tokens_per_s"]
    assert all(value > 0 for value in told.values())
    text = client.send("GET", "/ext/v1/metrics").body.decode()
    samples = dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
    tokens = {phase: float(samples[f'rolldeck_gpu_worker_phase_tokens_total{{phase="{phase}"}}']) for phase in PHASES}
    assert tokens == {"prefill": 9, "decode": 7, "forward": 0, "update": len(TEXT) - 1}
    assert float(samples["rolldeck_gpu_worker_update_flops_total"]) > 0
    assert samples[f'rolldeck_gpu_worker_model_staleness{{model="{model.id}"}}'] == "1"
    assert not [name for name in samples if "gpu_memory" in name or "peak_flops" in name or "utilisation" in name]


PHASES = ("prefill", "decode", "forward", "update")
