"""The GPU worker's own update: packed micro-batches, losses summed, one AdamW step."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from rolldeck_gpu_worker.adamw import AdamParams
from rolldeck_gpu_worker.base_models import BaseModels
from rolldeck_gpu_worker.datums import Datum, LossRequest
from rolldeck_gpu_worker.trainer import Trainer
from rows import Row

# The worker's default for a micro-batch.
MICRO_BATCH_TOKENS = 2048
ADAM = AdamParams(learning_rate=1e-5, eps=1e-8)


class PackedUpdate:
    def __init__(
        self,
        folder: str,
        device: torch.device = torch.device("cpu"),
        compute: torch.dtype = torch.float32,
        micro_batch_tokens: int = MICRO_BATCH_TOKENS,
    ):
        self._base = BaseModels([], {"policy": Path(folder)}, compute).get("policy")
        self._device, self._micro_batch_tokens = device, micro_batch_tokens
        self.trainer = self._fresh()

    def _fresh(self) -> Trainer:
        return Trainer(self._base.make_weights(0, self._device, with_grad=True), self._micro_batch_tokens)

    def request(self, rows: list[Row]) -> LossRequest:
        """Token-mean: the denominator is in the advantages."""
        trained = sum(row.trained for row in rows)
        return LossRequest([_datum(row, trained) for row in rows], "importance_sampling", {}, "")

    def gradient(self, request: LossRequest) -> dict[str, torch.Tensor]:
        """By Hugging Face name."""
        trainer = self._fresh()
        _finish(trainer.forward_backward(request))
        # Seen through weights' views, the gradient's buffer takes their names.
        trainer.weights.flat.detach().copy_(trainer.weights.grad_flat)
        return trainer.weights.to_hf()

    def update(self, request: LossRequest) -> None:
        _finish(self.trainer.forward_backward(request))
        self.trainer.optim_step(ADAM, None)


def _finish(task) -> None:
    for _ in task:
        pass


def _datum(row: Row, trained: int) -> Datum:
    length, masked = len(row.tokens) - 1, row.prompt - 1
    weights = np.zeros(length, np.float32)
    weights[masked:] = 1
    logprobs = np.zeros(length, np.float32)
    logprobs[masked:] = row.logprobs
    advantages = weights * np.float32(row.advantage / trained)
    return Datum(row.tokens[:-1], row.tokens[1:], weights, logprobs, advantages, None)
