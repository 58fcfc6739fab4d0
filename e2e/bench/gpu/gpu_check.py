"""What a GPU does with the worker's engine, in one run of at most six minutes: sampling and update tokens a second, MFU, memory
and the log-probability gap, on the shape of Qwen3-0.6B with random weights, beside `transformers` and TRL where those are there.

Uses only what the machine has; prints one JSON object last, in which `missing` says what was not measured and why.

    python e2e/bench/gpu/gpu_check.py [--tiny] [--device auto|cpu|cuda] [--dtype auto|float32|bfloat16] [--budget-s 330]

`--tiny` is a small shape for a CPU, to see that the script runs."""

from __future__ import annotations

import argparse
import json
import platform
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[3]
sys.path[:0] = [str(PROJECT / "infra/gpu-worker"), *(str(PROJECT / "e2e/bench" / part) for part in ("update", "sample"))]

import numpy as np  # noqa: E402
import torch  # noqa: E402
from packed_update import PackedUpdate  # noqa: E402
from rolldeck_gpu_worker.base_models import BaseModels  # noqa: E402
from rolldeck_gpu_worker.batch import BatchLimits  # noqa: E402
from rolldeck_gpu_worker.datums import Datum, LossRequest  # noqa: E402
from rolldeck_gpu_worker.engine import Engine, SampleJob  # noqa: E402
from rolldeck_gpu_worker.gpu_reading import GpuReader, device_name, gpu_uuid  # noqa: E402
from rolldeck_gpu_worker.memory import peak_bytes, release_cached, wait_for  # noqa: E402
from rolldeck_gpu_worker.phases import StepRates, peak_flops  # noqa: E402
from rolldeck_gpu_worker.sampling import SamplingParams  # noqa: E402
from rolldeck_gpu_worker.service import device_named, dtype_named  # noqa: E402
from rolldeck_gpu_worker.snapshots import Snapshot  # noqa: E402
from rows import VOCABULARY, Row, in_batches, make_rows  # noqa: E402
from safetensors.torch import save_file  # noqa: E402

QUICKSTART = PROJECT / "infra/models/quickstart"
QWEN3_600M = {"hidden_size": 1024, "intermediate_size": 3072, "num_hidden_layers": 28, "num_attention_heads": 16}
QWEN3_600M |= {"num_key_value_heads": 8, "head_dim": 128, "vocab_size": 151_936, "max_position_embeddings": 40_960}
QWEN3_600M |= {"rope_theta": 1_000_000.0, "max_window_layers": 28, "initializer_range": 0.02}
TINY = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4, "head_dim": 8}
TINY |= {"num_key_value_heads": 2, "max_position_embeddings": 128, "max_window_layers": 2}


@dataclass(frozen=True)
class Size:
    """`cap`: longest training row; `batch`: rows of a padded batch."""

    shape: dict
    prompts: int
    prompt_tokens: int
    new_tokens: int
    rows: int
    cap: int
    batch: int
    micro_batch_tokens: int


FULL = Size(QWEN3_600M, 256, 512, 256, rows=128, cap=2048, batch=8, micro_batch_tokens=16_384)
SMALL = Size(TINY, 4, 12, 8, rows=6, cap=48, batch=3, micro_batch_tokens=256)


class Check:
    """One run's scene: where it computes, what it found, and what it left out."""

    def __init__(self, size: Size, device: torch.device, dtype: torch.dtype, folder: Path, ends_at: float):
        self.size, self.device, self.dtype, self.folder = size, device, dtype, folder
        self.missing: list[str] = []
        self._ends_at = ends_at

    def part(self, name: str, work: Callable[[], dict]) -> dict | None:
        """Runs one part; without time, package or memory for it there is None and a reason."""
        if time.monotonic() > self._ends_at:
            self.missing.append(f"{name}: no time was left")
            return None
        release_cached(self.device)
        if self.device.type == "cuda":
            torch.cuda.reset_peak_memory_stats(self.device)
        try:
            found = work()
        except Exception as error:
            # A part that fails is told, and must not take the others' figures with it.
            self.missing.append(f"{name}: {type(error).__name__}: {error}"[:300])
            return None
        return {**found, "peakBytes": peak_bytes(self.device)}

    def seconds(self, work: Callable[[], object]) -> float:
        wait_for(self.device)
        started = time.perf_counter()
        work()
        wait_for(self.device)
        return time.perf_counter() - started

    def prompts(self) -> list[list[int]]:
        rng = np.random.default_rng(0)
        return rng.integers(0, VOCABULARY, (self.size.prompts, self.size.prompt_tokens)).tolist()

    def training_rows(self) -> list[Row]:
        return make_rows(0, self.size.rows, self.size.cap, VOCABULARY)


def make_folder(folder: Path, size: Size) -> int:
    """A model folder with random weights and the quickstart policy's tokenizer; returns its parameters."""
    shutil.copytree(QUICKSTART, folder, dirs_exist_ok=True)
    config = json.loads((folder / "config.json").read_text()) | size.shape
    (folder / "config.json").write_text(json.dumps(config))
    base = BaseModels([], {"policy": folder}).get("policy")
    save_file(base.make_weights(0, torch.device("cpu"), with_grad=False).to_hf(), folder / "model.safetensors")
    return base.parameters


def own_sampling(check: Check) -> dict:
    """All prompts at once through the engine, as a step's rollouts come."""
    size = check.size
    weights = BaseModels([], {"policy": check.folder}, check.dtype).get("policy").frozen(check.device)
    engine = Engine(check.device, BatchLimits(rows=size.prompts, prefill_tokens=8192), prefix_bytes=0)
    engine.start()
    try:
        sample_all(engine, weights, check.prompts()[:2], 4)
        rates = StepRates()
        phases = {"prefill": engine.counters.prefill, "decode": engine.counters.decode}
        rates.since_last(phases, None)
        spent = check.seconds(lambda: sample_all(engine, weights, check.prompts(), size.new_tokens))
        told = rates.since_last(phases, None)
    finally:
        engine.stop(30)
    drawn = size.prompts * size.new_tokens
    return {
        "seconds": spent,
        "tokensPerS": drawn / spent,
        "prefillTokensPerS": told.get("prefill_tokens_per_s"),
        "decodeTokensPerS": told.get("decode_tokens_per_s"),
    }


def sample_all(engine: Engine, weights, prompts: list[list[int]], new_tokens: int) -> list[dict]:
    """@raises WorkerError what a sample failed with"""
    done = threading.Semaphore(0)
    results: list = [None] * len(prompts)
    params = SamplingParams(new_tokens, 1.0, 1.0, -1, 0, frozenset(), ())
    snapshot = Snapshot("check", 0, weights)
    for index, prompt in enumerate(prompts):

        def ended(result, error, index=index) -> None:
            results[index] = error if error is not None else result
            done.release()

        engine.submit(SampleJob(snapshot, np.asarray(prompt, np.int64), params, 1, ended))
    for _ in prompts:
        done.acquire()
    for result in results:
        if isinstance(result, Exception):
            raise result
    return results


def library_sampling(check: Check) -> dict:
    """`generate` of all prompts in one batch, weights in the type that computes."""
    from transformers import AutoModelForCausalLM

    size = check.size
    options = {"dtype": check.dtype, "attn_implementation": "sdpa"}
    model = AutoModelForCausalLM.from_pretrained(check.folder, **options).to(check.device).eval()
    ids = torch.tensor(check.prompts(), device=check.device)

    def generate(rows: torch.Tensor, count: int) -> None:
        more = {"min_new_tokens": count, "max_new_tokens": count, "do_sample": True, "top_k": 0, "pad_token_id": 0}
        model.generate(rows, attention_mask=torch.ones_like(rows), **more)

    with torch.inference_mode():
        generate(ids[:2], 4)
        spent = check.seconds(lambda: generate(ids, size.new_tokens))
    return {"seconds": spent, "tokensPerS": size.prompts * size.new_tokens / spent}


def own_update(check: Check) -> dict:
    """Packed forward and backward passes over all rows, and the optimizer's step."""
    update = PackedUpdate(str(check.folder), check.device, check.dtype, check.size.micro_batch_tokens)
    rows = check.training_rows()
    update.update(update.request(rows[:2]))
    rates, phases = StepRates(), {"update": update.trainer.updated}
    rates.since_last(phases, None)
    spent = check.seconds(lambda: update.update(update.request(rows)))
    told = rates.since_last(phases, peak_flops(device_name(check.device), check.dtype))
    return {"seconds": spent, "tokensPerS": told["update_tokens_per_s"], "mfu": told.get("mfu")}


def library_update(check: Check) -> dict:
    from padded_update import PaddedUpdate

    update, rows = PaddedUpdate(str(check.folder), check.device, check.dtype), check.training_rows()
    update.update(in_batches(rows[:2], 2, by_length=True))
    batches = in_batches(rows, check.size.batch, by_length=True)
    return timed_update(check, lambda: update.update(batches))


def trl_update(check: Check) -> dict:
    import trl_update as bench

    rows = check.training_rows()
    with tempfile.TemporaryDirectory() as out:
        mixed, cpu = check.dtype != torch.float32, check.device.type == "cpu"
        trainer = bench.make_trainer(str(check.folder), out, check.size.batch, mixed=mixed, use_cpu=cpu)
        optimiser = torch.optim.AdamW(trainer.model.parameters(), lr=1e-5, betas=(0.9, 0.95), eps=1e-8, fused=True)
        bench.update(trainer, optimiser, in_batches(rows[:2], 2, by_length=True))
        batches = in_batches(rows, check.size.batch, by_length=True)
        return timed_update(check, lambda: bench.update(trainer, optimiser, batches))


def timed_update(check: Check, work: Callable[[], None]) -> dict:
    spent = check.seconds(work)
    return {"seconds": spent, "tokensPerS": sum(len(row.tokens) - 1 for row in check.training_rows()) / spent}


def gap(check: Check) -> dict:
    """Largest and mean |trainer's − sampler's log-probability| of what the engine sampled."""
    update = PackedUpdate(str(check.folder), check.device, check.dtype, check.size.micro_batch_tokens)
    prompts = check.prompts()[:32]
    engine = Engine(check.device, BatchLimits(rows=64, prefill_tokens=8192), prefix_bytes=0)
    engine.start()
    try:
        answers = sample_all(engine, update.trainer.weights.snapshot(), prompts, check.size.new_tokens)
    finally:
        engine.stop(30)
    data = []
    for prompt, answer in zip(prompts, answers, strict=True):
        (sequence,) = answer["sequences"]
        tokens = np.asarray([*prompt, *sequence["tokens"]])
        before = np.zeros(len(prompt) - 1, np.float32)
        logprobs = np.concatenate([before, np.asarray(sequence["logprobs"], np.float32)])
        mask = np.concatenate([before, np.ones(len(sequence["tokens"]), np.float32)])
        data.append(Datum(tokens[:-1], tokens[1:], mask, logprobs, mask, None))
    task = update.trainer.forward(LossRequest(data, "importance_sampling", {}, ""))
    while True:
        try:
            next(task)
        except StopIteration as end:
            outputs = end.value["loss_fn_outputs"]
            break
    gaps = [
        np.abs(np.asarray(output["logprobs"]["data"]) - row.logprobs)[row.weights != 0]
        for output, row in zip(outputs, data, strict=True)
    ]
    every = np.concatenate(gaps)
    return {"max": float(every.max()), "mean": float(every.mean()), "tokens": len(every)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tiny", action="store_true")
    parser.add_argument("--device", choices=["auto", "cpu", "cuda"], default="auto")
    parser.add_argument("--dtype", choices=["auto", "float32", "bfloat16"], default="auto")
    parser.add_argument("--budget-s", type=float, default=330, help="no part begins after so many seconds")
    asked = parser.parse_args()
    started = time.monotonic()
    device = device_named(asked.device)
    dtype = dtype_named(asked.dtype, device)
    size = SMALL if asked.tiny else FULL
    with tempfile.TemporaryDirectory(prefix="rolldeck-gpu-check-") as made:
        check = Check(size, device, dtype, Path(made) / "policy", started + asked.budget_s)
        parameters = make_folder(check.folder, size)
        reader = GpuReader(gpu_uuid(device))
        # The own figures first: they are what the script is for.
        parts = {
            "sampling": check.part("sampling", lambda: own_sampling(check)),
            "update": check.part("update", lambda: own_update(check)),
            "logprobGap": check.part("logprobGap", lambda: gap(check)),
            "transformersSampling": check.part("transformersSampling", lambda: library_sampling(check)),
            "transformersUpdate": check.part("transformersUpdate", lambda: library_update(check)),
            "trlUpdate": check.part("trlUpdate", lambda: trl_update(check)),
        }
        reading = reader.read()
    if device.type != "cuda":
        check.missing.append("gpu: this machine has none that torch sees; figures are of the CPU")
    elif reading.memory_used_bytes is None:
        check.missing.append("nvml: nvidia-ml-py or the driver does not tell of this GPU")
    result = {
        "device": device_name(device) or platform.processor() or platform.machine(),
        "kind": device.type,
        "torch": torch.__version__,
        "dtype": str(dtype).removeprefix("torch."),
        "parameters": parameters,
        "size": {name: value for name, value in vars(size).items() if name != "shape"},
        **parts,
        "gpu": {"utilisation": reading.utilisation, "powerW": reading.power_w, "totalBytes": reading.memory_total_bytes},
        "seconds": time.monotonic() - started,
        "missing": check.missing,
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
