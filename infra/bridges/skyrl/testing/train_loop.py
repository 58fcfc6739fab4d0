"""SkyRL's trainer on one CPU thread, for tests: `train_loop.py <settings.json>`.

What is SkyRL's own: the input batch, `RayPPOTrainer`'s generate (with its validator), post-processing, tensors,
advantages and their normalisation, and its registered policy loss. `ServedPolicy` stands for its sharded workers and
its weight sync."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from rolldeck_driven.batch import COLUMN
from served_policy import ServedPolicy
from skyrl.backends.skyrl_train.utils.ppo_utils import PolicyLossRegistry
from skyrl.train.config import AlgorithmConfig
from skyrl.train.generators.utils import prepare_generator_input
from skyrl.train.trainer import RayPPOTrainer
from transformers import AutoTokenizer

from rolldeck_skyrl.asked_batch import dataset_row
from rolldeck_skyrl.generator import RolldeckGenerator


class TrainLoop:
    """@param settings: `steps`, `groups`, `samples`, `leaseS`, `learningRate`, `base` (model folder), `served`
    (folder of versions)"""

    def __init__(self, settings: dict[str, Any]):
        self._settings = settings
        self._policy = ServedPolicy(Path(settings["base"]), Path(settings["served"]), settings["learningRate"])
        self._trainer = self._skyrl_trainer()

    async def run(self) -> None:
        """The steps that are left, one line of JSON for each."""
        for step in range(self._policy.steps + 1, self._settings["steps"] + 1):
            report = await self._step(step)
            self._policy.sync(step)
            print(f"STEP {json.dumps({'step': step, **report})}", flush=True)
        self._trainer.generator.close()

    def _skyrl_trainer(self) -> RayPPOTrainer:
        """SkyRL's trainer without its cluster: what its methods for a batch read."""
        settings = self._settings
        algorithm = AlgorithmConfig()
        algorithm.advantage_estimator = "grpo"
        algorithm.policy_loss_type = "regular"
        algorithm.loss_reduction = "token_mean"
        trainer = RayPPOTrainer.__new__(RayPPOTrainer)
        trainer.cfg = SimpleNamespace(
            trainer=SimpleNamespace(
                algorithm=algorithm,
                train_batch_size=settings["groups"],
                policy_mini_batch_size=settings["groups"],
                micro_train_batch_size_per_gpu=1,
                critic=SimpleNamespace(model=SimpleNamespace(path=None)),
            ),
            generator=SimpleNamespace(
                n_samples_per_prompt=settings["samples"], step_wise_trajectories=False, merge_stepwise_output=False
            ),
        )
        trainer.tokenizer = AutoTokenizer.from_pretrained(settings["base"])
        trainer.all_metrics = {}
        trainer.dispatch = SimpleNamespace(get_lcm_dp_size=lambda: 1)
        pad = trainer.tokenizer.pad_token_id
        trainer.generator = RolldeckGenerator.from_environment(
            lease_s=settings["leaseS"], poll_s=0.1, pad_token_id=0 if pad is None else pad
        )
        return trainer

    def _input(self, step: int):
        """The same rows for a step however often it is made: SkyRL keeps its data loader's place in its checkpoints."""
        groups = self._settings["groups"]
        rows = [dataset_row(groups * step + group) for group in range(groups)]
        prompts = [
            {**{key: row[key] for key in ("prompt", "env_class")}, "env_extras": {COLUMN: row[COLUMN]}, "uid": str(uid)}
            for uid, row in enumerate(rows)
        ]
        return prepare_generator_input(prompts, self._settings["samples"], {}, "rolldeck", "train", step)

    async def _step(self, step: int) -> dict[str, Any]:
        trainer = self._trainer
        given, uids = self._input(step)
        output = await trainer.generate(given)
        rollouts = [row["rollout_id"] for row in output["env_metrics"]]
        rewards = list(output["rewards"])
        output, uids = trainer.postprocess_generator_output(output, uids)
        data = trainer.convert_to_training_input(output, uids)
        data["values"] = None
        data = trainer.compute_advantages_and_returns(data)
        data = trainer._normalize_advantages(data, data.metadata["policy_mini_batch_boundaries"])
        return {"rollouts": rollouts, "rewards": rewards, **self._update(data)}

    def _update(self, data) -> dict[str, float]:
        """One optimizer step with SkyRL's loss. `gap`: the largest |trainer - sampler| of a trained token's logprob."""
        mask = data["loss_mask"]
        logprobs = self._policy.logprobs(data["sequences"], data["attention_mask"], mask.shape[1])
        gap = ((logprobs.detach() - data["rollout_logprobs"]).abs() * mask).max()
        loss = self._loss(data, logprobs)
        norm = self._policy.step(loss)
        return {"loss": loss.item(), "gradNorm": norm, "gap": gap.item(), "trained": int(mask.sum())}

    def _loss(self, data, logprobs: torch.Tensor) -> torch.Tensor:
        """SkyRL's registered policy loss of the batch."""
        loss_of = PolicyLossRegistry.get("regular")
        algorithm = self._trainer.cfg.trainer.algorithm
        mask, sampled = data["loss_mask"], data["rollout_logprobs"]
        loss, _ = loss_of(logprobs, logprobs.detach(), data["advantages"], algorithm, mask, sampled)
        return loss


if __name__ == "__main__":
    torch.set_num_threads(1)
    torch.manual_seed(0)
    asyncio.run(TrainLoop(json.loads(Path(sys.argv[1]).read_text())).run())
