"""SkyRL behind its bridge as one backend of a comparison: `skyrl_backend.py train|forward <infra/bridges/skyrl>`, input as JSON on stdin.

`train`: the steps of `testing/train_loop.py` with Adam and SkyRL's own k3 in the loss; answers with each step's report.
`forward`: rows of finished rollouts as the bridge and SkyRL make a batch of them; answers with the log-probabilities of every row's tokens
from its first trained one on, by the model that the trainer would begin with."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

bridge = Path(sys.argv[2])
driven = bridge.parent / "driven"
sys.path[:0] = [str(folder) for folder in (bridge, bridge / "testing", driven, driven / "testing")]

import torch
from rolldeck_skyrl.generator_output import generator_output
from served_policy import logprobs_of
from skyrl.backends.skyrl_train.utils.ppo_utils import compute_approx_kl
from stored_rows import as_batch
from train_loop import TrainLoop
from transformers import AutoModelForCausalLM


class ComparedLoop(TrainLoop):
    """@param settings: those of TrainLoop, and `clipLow`, `clipHigh`, `klCoefficient`, `beta2`"""

    def __init__(self, settings: dict[str, Any]):
        super().__init__(settings)
        self.reports: list[dict[str, Any]] = []
        self._policy.optimizer = torch.optim.AdamW(
            self._policy.model.parameters(), lr=settings["learningRate"], betas=(0.9, settings["beta2"]), weight_decay=0
        )
        self._reference = AutoModelForCausalLM.from_pretrained(settings["base"], dtype=torch.float32)
        algorithm = self._trainer.cfg.trainer.algorithm
        algorithm.eps_clip_low, algorithm.eps_clip_high = settings["clipLow"], settings["clipHigh"]

    async def _step(self, step: int) -> dict[str, Any]:
        report = await super()._step(step)
        self.reports.append(report)
        print(f"step {step}: {report['loss']}", file=sys.stderr, flush=True)
        return report

    def _loss(self, data, logprobs: torch.Tensor) -> torch.Tensor:
        mask = data["loss_mask"]
        with torch.no_grad():
            reference = logprobs_of(self._reference, data["sequences"], data["attention_mask"], mask.shape[1])
        kl = compute_approx_kl(logprobs, reference, mask, "k3")
        return super()._loss(data, logprobs) + self._settings["klCoefficient"] * (kl * mask).sum() / mask.sum()

    def forward(self, rows: list[dict[str, Any]]) -> list[list[float]]:
        """@param rows: `tokens`, `mask`, `logprobs` of a rollout each, as the API gives them"""
        asked, finished = as_batch(rows)
        output = generator_output(asked, finished, (None,) * len(rows), step_wise=False, pad_token_id=0)
        output["rewards"] = [[0.0] * len(response) for response in output["response_ids"]]
        data = self._trainer.convert_to_training_input(output, [str(place) for place in range(len(rows))])
        with torch.no_grad():
            width = data["loss_mask"].shape[1]
            logprobs = self._policy.logprobs(data["sequences"], data["attention_mask"], width)
        # Where SkyRL put a response within the batch is told by its own mask.
        return [row[mask == 1].tolist() for row, mask in zip(logprobs, data["response_mask"])]


if __name__ == "__main__":
    torch.set_num_threads(1)
    torch.manual_seed(0)
    given = json.load(sys.stdin)
    if sys.argv[1] == "train":
        loop = ComparedLoop(given["settings"])
        asyncio.run(loop.run())
        print(json.dumps(loop.reports))
    else:
        # SkyRL holds a batch against its settings: here every row is a prompt of its own.
        rows = given["rows"]
        settings = {**given["settings"], "groups": len(rows), "samples": 1}
        print(json.dumps(ComparedLoop(settings).forward(rows)))
