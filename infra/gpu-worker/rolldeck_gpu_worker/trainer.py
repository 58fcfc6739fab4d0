"""One model under training: weights, accumulated gradient, optimiser and step count.

Work comes as generators that yield between micro-batches, so that the engine thread can sample in between and a cancel
takes effect there. Invariant: a gradient that was only partly accumulated is never applied; every failure or cancel
inside forward_backward discards the whole accumulated gradient."""

from __future__ import annotations

import time
from collections.abc import Generator
from dataclasses import dataclass, field

import numpy as np
import torch

from .adamw import AdamParams, AdamW
from .datums import Datum, LossRequest
from .errors import WorkerError
from .logprobs import target_logprobs
from .losses import TokenInputs, token_losses
from .memory import is_out_of_memory, peak_bytes, release_cached, wait_for
from .packing import first_fit_decreasing, pack
from .phases import Phase, update_flops
from .policy_weights import PolicyWeights

Task = Generator[None, None, dict]


@dataclass
class LossSums:
    """Reductions over the trained tokens of one request."""

    loss: float = 0.0
    tokens: int = 0
    clipped: int = 0
    non_finite: int = 0
    gap: float = 0.0
    all_masked: int = 0
    logprobs: list = field(default_factory=list)
    elementwise: list = field(default_factory=list)

    def result(self) -> dict:
        return {
            "loss_fn_output_type": "tensors",
            "loss_fn_outputs": [
                {"logprobs": _tensor(lp), "elementwise_loss": _tensor(loss)}
                for lp, loss in zip(self.logprobs, self.elementwise, strict=True)
            ],
            "metrics": {
                "loss:sum": self.loss,
                "trained_tokens:sum": float(self.tokens),
                "clipped_tokens:sum": float(self.clipped),
                "non_finite_tokens:sum": float(self.non_finite),
                "all_masked_datums:sum": float(self.all_masked),
                "logprob_gap:max": self.gap,
            },
        }


def _tensor(array: np.ndarray) -> dict:
    return {"data": array.astype(np.float64).round(7).tolist(), "dtype": "float32", "shape": [len(array)]}


class Trainer:
    """@param micro_batch_tokens: largest packed micro-batch; a loss request may ask for fewer tokens.
    @param moments: what the optimizer's are kept in"""

    def __init__(self, weights: PolicyWeights, micro_batch_tokens: int, moments: torch.dtype = torch.float32):
        self.weights = weights
        self.optimiser = AdamW(weights.trained_flat, moments)
        self.step = 0
        self.skipped = 0
        self.trained_tokens = 0
        # Largest |own − sampler's log-probability| of the newest request that has any.
        self.logprob_gap: float | None = None
        self.forwarded = Phase()
        self.updated = Phase()
        self._budget = micro_batch_tokens
        self._kept: list[LossRequest] = []
        # Summed over what is kept.
        self._loss = 0.0

    @property
    def accumulated_datums(self) -> int:
        return sum(len(request.data) for request in self._kept)

    def zero_grad(self) -> None:
        self.weights.grad_flat.zero_()
        self._kept.clear()
        self._loss = 0.0

    def reset(self, step: int) -> None:
        """After new weights were copied in: no gradient, this step count."""
        self.zero_grad()
        self.step = step

    def forward(self, request: LossRequest) -> Task:
        """Log-probabilities and losses without gradients."""
        result = yield from self._run(request, self._budget, train=False)
        return result

    def forward_backward(self, request: LossRequest) -> Task:
        """Adds the request's gradient to the accumulated one."""
        try:
            result = yield from self._run(request, self._budget, train=True)
        except BaseException as error:
            kept = [*self._kept, request]
            self.zero_grad()
            if not is_out_of_memory(error):
                raise
            result = yield from self._again_smaller(kept, error)
            return result
        self._kept.append(request)
        self._loss += result["metrics"]["loss:sum"]
        return result

    def _again_smaller(self, kept: list[LossRequest], cause: BaseException) -> Task:
        """Out of memory: the whole step's payloads once more at half the token budget."""
        self._budget = max(64, self._budget // 2)
        release_cached(self.weights.flat.device)
        result: dict = {}
        try:
            for request in kept:
                result = yield from self._run(request, self._budget, train=True)
                self._loss += result["metrics"]["loss:sum"]
        except BaseException as error:
            self.zero_grad()
            if not is_out_of_memory(error):
                raise
            peak = peak_bytes(self.weights.flat.device)
            detail = f"out of memory at {self._budget} tokens per micro-batch, peak {peak} bytes"
            raise WorkerError("oom", detail) from cause
        self._kept = kept
        return result

    def _run(self, request: LossRequest, budget: int, train: bool) -> Task:
        asked = request.config.get("micro_batch_tokens")
        budget = budget if asked is None else min(budget, int(asked))
        lengths = [len(datum.tokens) for datum in request.data]
        sums = LossSums(logprobs=[None] * len(lengths), elementwise=[None] * len(lengths))
        for indices in first_fit_decreasing(lengths, budget):
            started = time.perf_counter()
            self._micro_batch(request, indices, sums, train)
            self._count([lengths[index] for index in indices], time.perf_counter() - started, train)
            yield
        if request.loss != "cross_entropy" and sums.tokens:
            self.logprob_gap = sums.gap
        sums.all_masked = sum(1 for datum in request.data if not datum.weights.any())
        if train:
            self.trained_tokens += request.tokens
        return sums.result()

    def _count(self, lengths: list[int], seconds: float, train: bool) -> None:
        if not train:
            self.forwarded.add(sum(lengths), seconds)
            return
        weights = self.weights
        flops = update_flops(weights.config, weights.flat.numel(), lengths, weights.adapter is not None)
        self.updated.add(sum(lengths), seconds, flops)

    def _micro_batch(self, request: LossRequest, indices: list[int], sums: LossSums, train: bool) -> None:
        datums = [request.data[index] for index in indices]
        device = self.weights.flat.device
        batch = pack([datum.tokens for datum in datums], device)
        ordered = [datums[index] for index in batch.order]
        targets = torch.from_numpy(np.concatenate([d.targets for d in ordered])).to(device)
        inputs = _token_inputs(ordered, batch.starts, device)
        with torch.set_grad_enabled(train):
            hidden = self.weights.hidden(batch)
            lp, entropies = target_logprobs(
                hidden,
                self.weights.head,
                targets,
                request.config.get("temperature", 1.0),
                with_entropy=bool(request.config.get("entropy_coef")),
                low_rank=self.weights.head_low_rank,
            )
            loss, clipped = token_losses(request.loss, lp, entropies, inputs, request.config)
            if train:
                loss.sum().backward()
        self._collect(request, indices, batch.order, batch.starts, lp.detach(), loss.detach(), clipped, inputs, sums)

    def _collect(self, request, indices, order, starts, lp, loss, clipped, inputs: TokenInputs, sums: LossSums) -> None:
        trained = inputs.weights != 0
        # JSON has no NaN: what is not finite is counted and reported as 0; the gradient keeps it: no update.
        finite = torch.isfinite(lp) & torch.isfinite(loss)
        sums.non_finite += int((~finite).sum())
        lp, loss = torch.where(finite, lp, 0.0), torch.where(finite, loss, 0.0)
        sums.loss += float(loss.double().sum())
        sums.tokens += int(trained.sum())
        sums.clipped += int((clipped & trained).sum())
        if request.loss != "cross_entropy" and bool(trained.any()):
            sums.gap = max(sums.gap, float(torch.where(trained & finite, (lp - inputs.logprobs).abs(), 0.0).max()))
        lp, loss = lp.cpu().numpy(), loss.cpu().numpy()
        for position, packed_index in enumerate(order):
            part = slice(starts[position], starts[position + 1])
            sums.logprobs[indices[packed_index]] = lp[part]
            sums.elementwise[indices[packed_index]] = loss[part]

    def optim_step(self, params: AdamParams, expect_step: int | None) -> dict:
        """One AdamW update, or none when the gradient norm is not finite; the step counts either way.

        @raises WorkerError step_mismatch when the model's step is not `expect_step`; nothing is applied."""
        if expect_step is not None and expect_step != self.step:
            raise WorkerError("step_mismatch", f"the model is at step {self.step}, not {expect_step}", "expect_step")
        datums, loss = self.accumulated_datums, self._loss
        started = time.perf_counter()
        norm, applied = self.optimiser.step(self.weights.trained_flat, self.weights.grad_flat, params)
        wait_for(self.weights.flat.device)
        self.updated.add(0, time.perf_counter() - started)
        self.zero_grad()
        self.step += 1
        self.skipped += 0 if applied else 1
        metrics = {
            "grad_norm": norm if applied else 0.0,
            "skipped": 0.0 if applied else 1.0,
            "learning_rate": params.learning_rate,
            "datums": float(datums),
            "loss": loss,
        }
        return {"metrics": metrics, "step": self.step}


def _token_inputs(datums: list[Datum], starts: list[int], device: torch.device) -> TokenInputs:
    def flat(name: str) -> torch.Tensor:
        return torch.from_numpy(np.concatenate([getattr(d, name) for d in datums])).to(device)

    refs = None if any(d.ref_logprobs is None for d in datums) else flat("ref_logprobs")
    row_of = torch.from_numpy(np.repeat(np.arange(len(datums)), np.diff(starts))).to(device)
    return TokenInputs(flat("weights"), flat("logprobs"), flat("advantages"), refs, row_of)
