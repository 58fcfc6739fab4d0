"""A small model in memory, for tests below HTTP."""

from __future__ import annotations

import json
import threading

import numpy as np
import torch
from worker_process import QUICKSTART, TINY

from rolldeck_gpu_worker.batch import BatchLimits
from rolldeck_gpu_worker.datums import Datum, LossRequest
from rolldeck_gpu_worker.engine import Engine, SampleJob
from rolldeck_gpu_worker.model_config import ModelConfig, parse_model_config
from rolldeck_gpu_worker.sampling import SamplingParams
from rolldeck_gpu_worker.snapshots import Snapshot
from rolldeck_gpu_worker.trainer import Trainer
from rolldeck_gpu_worker.weights import Weights, seeded_flat

CPU = torch.device("cpu")


def tiny_config(**changes) -> ModelConfig:
    raw = json.loads((QUICKSTART / "config.json").read_text())
    return parse_model_config(raw | TINY | changes)


def tiny_weights(seed: int = 0, with_grad: bool = False, **changes) -> Weights:
    config = tiny_config(**changes)
    # A larger deviation than at a real start: distributions that are not flat make errors visible.
    flat = seeded_flat(config, seed, CPU)
    return Weights(config, torch.where(flat == 1, flat, flat * 4), with_grad)


def tiny_trainer(seed: int = 0, micro_batch_tokens: int = 4096, **changes) -> Trainer:
    weights = tiny_weights(seed, with_grad=True, **changes)
    return Trainer(weights, micro_batch_tokens)


def rows(lengths: list[int], seed: int = 0) -> list[Datum]:
    """Random training rows with every array filled."""
    rng = np.random.default_rng(seed)

    def row(length: int) -> Datum:
        tokens = rng.integers(0, 260, length + 1)
        reals = [rng.normal(size=length).astype(np.float32) for _ in range(2)]
        return Datum(tokens[:-1], tokens[1:], np.ones(length, np.float32), reals[0] - 5, reals[1], None)

    return [row(length) for length in lengths]


def request(data: list[Datum], loss: str = "cross_entropy", **config: float) -> LossRequest:
    return LossRequest(data, loss, config, "digest")


def finish(task) -> dict:
    """Runs a training task to its end."""
    while True:
        try:
            next(task)
        except StopIteration as end:
            return end.value


class SyncEngine:
    """An engine thread whose samples are awaited."""

    def __init__(self, rows: int = 64, prefill_tokens: int = 4096, prefix_bytes: int = 64 << 20):
        self.engine = Engine(CPU, BatchLimits(rows, prefill_tokens), prefix_bytes)

    def __enter__(self) -> SyncEngine:
        self.engine.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.engine.stop(10)

    def sample(self, snapshot: Snapshot, prompts: list[list[int]], **params) -> list[dict]:
        """Samples every prompt at once; the i-th with seed i unless one is given."""
        done = threading.Semaphore(0)
        results: list = [None] * len(prompts)
        defaults = {"max_tokens": 12, "temperature": 1.0, "top_p": 1.0, "top_k": -1}
        defaults |= {"stop_tokens": frozenset(), "stop_strings": ()}
        for index, prompt in enumerate(prompts):

            def ended(result, error, index=index) -> None:
                results[index] = error if error is not None else result
                done.release()

            settings = SamplingParams(**(defaults | {"seed": index} | params))
            self.engine.submit(SampleJob(snapshot, np.asarray(prompt, np.int64), settings, 1, ended))
        for _ in prompts:
            assert done.acquire(timeout=60)
        return results
