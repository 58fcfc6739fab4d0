"""The worker's numbers in Prometheus text format. Counts and states only: never tokens, prompts or keys."""

from __future__ import annotations

import time

from .memory import peak_bytes
from .service import Service

_PREFIX = "rolldeck_gpu_worker_"


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
    return "\n".join(lines) + "\n"
