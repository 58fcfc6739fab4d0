"""The worker's numbers in Prometheus text format. Counts and states only: never tokens, prompts or keys."""

from __future__ import annotations

import time
from typing import Protocol

from .memory import peak_bytes
from .phases import Phase
from .service import Service

_PREFIX = "rolldeck_gpu_worker_"


class Metric(Protocol):
    """Adds one sample; the first of a name brings its help."""

    def __call__(self, name: str, kind: str, help_text: str, value: float, labels: str = "") -> None: ...


def render_metrics(service: Service) -> str:
    engine = service.engine
    counters = engine.counters
    lines: list[str] = []

    def metric(name: str, kind: str, help_text: str, value: float, labels: str = "") -> None:
        full = _PREFIX + name
        if not any(line.startswith(f"# TYPE {full} ") for line in lines):
            lines.extend([f"# HELP {full} {help_text}", f"# TYPE {full} {kind}"])
        lines.append(f"{full}{labels} {value}")

    metric("uptime_seconds", "gauge", "Seconds since start.", round(time.time() - service.started_at, 3))
    metric("sampled_tokens_total", "counter", "Tokens drawn.", counters.sampled_tokens)
    metric("prompt_tokens_total", "counter", "Prompt tokens of ended sequences.", counters.prompt_tokens)
    metric(
        "cached_prompt_tokens_total",
        "counter",
        "Prompt tokens taken from the prefix cache.",
        counters.cached_prompt_tokens,
    )
    metric("sequences_total", "counter", "Sequences ended.", counters.sequences_ended)
    metric("sample_steps_total", "counter", "Sampling steps.", counters.sample_steps)
    metric("tasks_total", "counter", "Training tasks ended.", counters.tasks_ended)
    metric("sample_seconds_total", "counter", "Engine time spent sampling.", round(counters.sample_seconds, 4))
    metric("task_seconds_total", "counter", "Engine time spent on tasks.", round(counters.task_seconds, 4))
    metric("active_sequences", "gauge", "Sequences in the batch.", engine.active_sequences)
    metric("waiting_sequences", "gauge", "Sequences not yet in the batch.", engine.waiting_sequences)
    metric("samples_in_progress", "gauge", "Sample requests not yet answered.", service.samples_in_progress)
    metric("kv_bytes", "gauge", "Key/value memory of running batches.", engine.cache_bytes)
    metric("prefix_bytes", "gauge", "Memory of cached prefixes.", engine.prefixes.bytes)
    metric("peak_bytes", "gauge", "Peak memory of the device, or resident set on CPU.", peak_bytes(service.device))
    _render_machine(metric, service)
    for phase in ("idle", "sample", "train"):
        metric(
            "phase", "gauge", "1 for the engine's present phase.", int(engine.phase == phase), f'{{phase="{phase}"}}'
        )
    for model in service.models.all():
        labels = f'{{model="{model.model_id}"}}'
        metric("model_step", "gauge", "Optimiser updates.", model.step, labels)
    for model in service.models.all():
        metric(
            "model_weight_version", "gauge", "Served version.", model.weight_version, f'{{model="{model.model_id}"}}'
        )
    for model in service.models.all():
        if model.trainer is not None:
            labels = f'{{model="{model.model_id}"}}'
            metric("trained_tokens_total", "counter", "Tokens trained.", model.trainer.trained_tokens, labels)
    _render_models(metric, service)
    return "\n".join(lines) + "\n"


def _render_machine(metric: Metric, service: Service) -> None:
    """Tokens and seconds of each phase, whose rates are tokens a second, and what the driver says; what is not known is absent."""
    phases = _phases(service)
    for name, phase in phases.items():
        metric("phase_tokens_total", "counter", "Tokens of a kind of work.", phase.tokens, f'{{phase="{name}"}}')
    for name, phase in phases.items():
        seconds = round(phase.seconds, 4)
        metric("phase_seconds_total", "counter", "Engine time of a kind of work.", seconds, f'{{phase="{name}"}}')
    flops = phases["update"].flops
    metric("update_flops_total", "counter", "Floating-point operations of updates, recomputation not counted.", flops)
    told = service.gpu.read()
    gauges = {
        "peak_flops": ("Floating-point operations a second that the device can do.", service.peak_flops),
        "gpu_memory_used_bytes": ("GPU memory in use, of all processes.", told.memory_used_bytes),
        "gpu_memory_total_bytes": ("GPU memory.", told.memory_total_bytes),
        "gpu_utilisation": ("Share of time in which the GPU did something, 0 to 1.", told.utilisation),
        "gpu_power_watts": ("Power that the GPU draws.", told.power_w),
        "gpu_temperature_celsius": ("Temperature of the GPU.", told.temperature_c),
    }
    for name, (help_text, value) in gauges.items():
        if value is not None:
            metric(name, "gauge", help_text, value)


def _phases(service: Service) -> dict[str, Phase]:
    counters = service.engine.counters
    found = {"prefill": counters.prefill, "decode": counters.decode, "forward": Phase(), "update": Phase()}
    for model in service.models.all():
        if model.trainer is not None:
            for name, phase in (("forward", model.trainer.forwarded), ("update", model.trainer.updated)):
                found[name].add(phase.tokens, phase.seconds, phase.flops)
    return found


def _render_models(metric: Metric, service: Service) -> None:
    for model in service.models.all():
        labels = f'{{model="{model.model_id}"}}'
        behind = model.step - model.weight_version
        metric("model_staleness", "gauge", "Steps that the served version is behind.", behind, labels)
    for model in service.models.all():
        if model.trainer is not None and model.trainer.logprob_gap is not None:
            help_text = "Largest difference of trainer's and sampler's log-probabilities in the newest request."
            metric("model_logprob_gap", "gauge", help_text, model.trainer.logprob_gap, f'{{model="{model.model_id}"}}')
