"""One short text that tests train on, over HTTP and in memory, and the rows that a trainer's own weights sample."""

from __future__ import annotations

import numpy as np
from tiny_model import SyncEngine, finish, request
from worker_process import Model, datum

from rolldeck_gpu_worker.adamw import AdamParams
from rolldeck_gpu_worker.datums import Datum
from rolldeck_gpu_worker.snapshots import Snapshot
from rolldeck_gpu_worker.trainer import Trainer

TEXT = [256, *b"find a", 259, 257, *b'[get(k="a")]', 259]
PARAMS = AdamParams(learning_rate=1e-2, eps=1e-8)


def train(model: Model, steps: int = 1) -> None:
    for _ in range(steps):
        model.forward_backward([datum(TEXT)])
        model.optim_step()


def loss_of(model: Model) -> float:
    asked = {"data": [datum(TEXT)], "loss_fn": "cross_entropy"}
    return model.call("forward", forward_input=asked)["metrics"]["loss:sum"]


def learn(trained: Trainer, steps: int, params: AdamParams = PARAMS) -> list[float]:
    """As `train`, in memory; the loss before each step."""
    tokens = np.asarray(TEXT)
    ones, zeros = np.ones(len(TEXT) - 1, np.float32), np.zeros(len(TEXT) - 1, np.float32)
    row, losses = Datum(tokens[:-1], tokens[1:], ones, zeros, zeros, None), []
    for _ in range(steps):
        losses.append(finish(trained.forward_backward(request([row])))["metrics"]["loss:sum"])
        trained.optim_step(params, None)
    return losses


def sampled(trained: Trainer) -> list[Datum]:
    """24 rows of 24 tokens each that the trainer's weights sampled, with the sampler's log-probabilities."""
    prompts = [TEXT[: 4 + index % 9] for index in range(24)]
    with SyncEngine() as engine:
        answers = engine.sample(Snapshot("m", 0, trained.weights.snapshot()), prompts, max_tokens=24)
    found = []
    for prompt, answer in zip(prompts, answers, strict=True):
        (sequence,) = answer["sequences"]
        tokens = np.asarray([*prompt, *sequence["tokens"]])
        before = np.zeros(len(prompt) - 1, np.float32)
        logprobs = np.concatenate([before, np.asarray(sequence["logprobs"], np.float32)])
        mask = np.concatenate([before, np.ones(len(sequence["tokens"]), np.float32)])
        found.append(Datum(tokens[:-1], tokens[1:], mask, logprobs, mask, None))
    return found
