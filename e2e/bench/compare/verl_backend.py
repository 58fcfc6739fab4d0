"""VeRL behind its bridge as one backend of a comparison: `verl_backend.py train|forward <infra/bridges/verl>`, input as JSON on stdin.

`train`: the steps of `testing/train_loop.py` with Adam, the comparison's clip and VeRL's own k3 in the loss; answers with each step's
report. `forward`: rows of finished rollouts in the `DataProto` that the bridge makes of them; answers with the log-probabilities of every
row's tokens from its first trained one on, by the model that the trainer would begin with."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

bridge = Path(sys.argv[2])
driven = bridge.parent / "driven"
sys.path[:0] = [str(folder) for folder in (bridge, bridge / "testing", driven, driven / "testing")]

import torch
from rolldeck_verl.data_proto import Widths, data_proto
from served_policy import logprobs_of
from stored_rows import as_batch
from train_loop import TrainLoop
from transformers import AutoModelForCausalLM
from verl.protocol import DataProto
from verl.trainer.ppo.core_algos import agg_loss, kl_penalty
from verl.utils.config import omega_conf_to_dataclass

# The comparison's rollouts have at most 256 tokens.
WIDTH = 256
# VeRL clips a ratio's loss from above at this many times the advantage; the comparison does not.
NO_DUAL_CLIP = 1e9


class ComparedLoop(TrainLoop):
    """@param settings: those of TrainLoop, and `clipLow`, `clipHigh`, `klCoefficient`, `beta2`"""

    def __init__(self, settings: dict[str, Any]):
        super().__init__(settings)
        self.reports: list[dict[str, Any]] = []
        self._policy.optimizer = torch.optim.AdamW(
            self._policy.model.parameters(), lr=settings["learningRate"], betas=(0.9, settings["beta2"]), weight_decay=0
        )
        self._reference = AutoModelForCausalLM.from_pretrained(settings["base"], dtype=torch.float32)
        self._config.data.max_prompt_length = self._config.data.max_response_length = WIDTH
        actor = self._config.actor_rollout_ref.actor
        actor.clip_ratio_low, actor.clip_ratio_high = settings["clipLow"], settings["clipHigh"]
        actor.clip_ratio_c = NO_DUAL_CLIP
        self._actor = omega_conf_to_dataclass(actor)

    def _step(self, step: int, rows: dict[str, Any], manager: Any) -> dict[str, Any]:
        report = super()._step(step, rows, manager)
        self.reports.append(report)
        print(f"step {step}: {report['loss']}", file=sys.stderr, flush=True)
        return report

    def _loss(self, batch: DataProto, logprobs: torch.Tensor) -> torch.Tensor:
        mask = batch.batch["response_mask"]
        with torch.no_grad():
            sequences, attention = batch.batch["input_ids"], batch.batch["attention_mask"]
            reference = logprobs_of(self._reference, sequences, attention, mask.shape[1])
        kl = agg_loss(kl_penalty(logprobs, reference, "low_var_kl"), mask, "token-mean")
        return super()._loss(batch, logprobs) + self._settings["klCoefficient"] * kl

    def forward(self, rows: list[dict[str, Any]]) -> list[list[float]]:
        """@param rows: `tokens`, `mask`, `logprobs` of a rollout each, as the API gives them"""
        asked, finished = as_batch(rows)
        uids = [str(place) for place in range(len(rows))]
        pad = self._trainer.tokenizer.pad_token_id
        batch = data_proto(asked, finished, uids, Widths(WIDTH, WIDTH), pad)
        with torch.no_grad():
            logprobs = self._logprobs(batch)
        lengths = batch.batch["attention_mask"][:, -WIDTH:].sum(-1).tolist()
        return [row[:length].tolist() for row, length in zip(logprobs, lengths)]


if __name__ == "__main__":
    torch.set_num_threads(1)
    torch.manual_seed(0)
    given = json.load(sys.stdin)
    loop = ComparedLoop(given["settings"])
    if sys.argv[1] == "train":
        loop.run()
        print(json.dumps([{name: report[name] for name in ("gap", "gradNorm")} for report in loop.reports]))
    else:
        print(json.dumps(loop.forward(given["rows"])))
