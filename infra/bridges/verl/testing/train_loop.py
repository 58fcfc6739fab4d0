"""VeRL's trainer on one CPU thread, for tests: `train_loop.py <settings.json>`.

What is VeRL's own: its configuration, data set and loader, `RayPPOTrainer`'s batch for generation, the hook by which it
makes its agent-loop manager, `DataProto` and all that its `fit` does with one on the driver (reward, advantages,
metrics), and its registered policy loss. `ServedPolicy` stands for its sharded workers and its weight sync,
`PolicyClient` for its engines."""

from __future__ import annotations

import json
import sys
import uuid
from pathlib import Path
from typing import Any

import numpy as np
import torch
import verl
from hydra import compose, initialize_config_dir
from omegaconf import DictConfig
from policy_client import PolicyClient
from served_policy import ServedPolicy
from verl.protocol import DataProto
from verl.trainer.ppo import core_algos
from verl.trainer.ppo.metric_utils import compute_data_metrics, compute_timing_metrics
from verl.trainer.ppo.ray_trainer import RayPPOTrainer, compute_advantage
from verl.trainer.ppo.reward import extract_reward
from verl.utils import hf_tokenizer
from verl.utils.config import omega_conf_to_dataclass
from verl.utils.debug.metrics import calculate_debug_metrics
from verl.utils.import_utils import load_class_from_fqn

from rolldeck_verl.asked_batch import dataset_row


def verl_config(settings: dict[str, Any], rows: Path) -> DictConfig:
    """VeRL's own defaults with what a driven run needs."""
    folder = str(Path(verl.__file__).parent / "trainer/config")
    with initialize_config_dir(folder, version_base=None):
        return compose(
            "ppo_trainer",
            overrides=[
                f"actor_rollout_ref.model.path={settings['base']}",
                "+actor_rollout_ref.rollout.agent.agent_loop_manager_class="
                "rolldeck_verl.manager.RolldeckAgentLoopManager",
                "actor_rollout_ref.rollout.name=vllm",
                f"actor_rollout_ref.rollout.n={settings['samples']}",
                "actor_rollout_ref.rollout.temperature=1.0",
                "actor_rollout_ref.actor.use_dynamic_bsz=true",
                "algorithm.adv_estimator=grpo",
                f"data.train_files={rows}",
                f"data.val_files={rows}",
                f"data.train_batch_size={settings['groups']}",
                "data.shuffle=false",
                "data.dataloader_num_workers=0",
                "data.max_prompt_length=1024",
                "data.max_response_length=1024",
                "trainer.test_freq=-1",
                "trainer.val_before_train=false",
                f"trainer.total_training_steps={settings['steps']}",
            ],
        )


class TrainLoop:
    """@param settings: `steps`, `groups`, `samples`, `learningRate`, `base` (model folder), `served`
    (folder of versions), `engines` (address of what samples)"""

    def __init__(self, settings: dict[str, Any]):
        self._settings = settings
        self._served = Path(settings["served"])
        self._policy = ServedPolicy(Path(settings["base"]), self._served, settings["learningRate"])
        rows = self._served / "rows.jsonl"
        count = settings["groups"] * settings["steps"]
        rows.write_text("".join(json.dumps(dataset_row(settings["groups"] + index)) + "\n" for index in range(count)))
        self._config = verl_config(settings, rows)
        self._trainer = RayPPOTrainer.__new__(RayPPOTrainer)
        self._trainer.config = self._config
        self._trainer.tokenizer, self._trainer.processor = hf_tokenizer(settings["base"]), None
        self._trainer._create_dataloader(None, None, None, None)
        self._actor = omega_conf_to_dataclass(self._config.actor_rollout_ref.actor)

    def run(self) -> None:
        """The steps that are left, one line of JSON for each."""
        named = self._config.actor_rollout_ref.rollout.agent.agent_loop_manager_class
        manager = load_class_from_fqn(named, "AgentLoopManager").create(
            config=self._config,
            llm_client=PolicyClient(self._config, self._settings["engines"]),
            teacher_client=None,
            reward_loop_worker_handles=None,
        )
        loader = self._trainer.train_dataloader
        if self._policy.steps > 0:
            loader.load_state_dict(torch.load(self._place(self._policy.steps), weights_only=False))
        for step, rows in enumerate(loader, start=self._policy.steps + 1):
            report = self._step(step, rows, manager)
            # Its place first: weights that serve always have one.
            torch.save(loader.state_dict(), self._place(step))
            self._policy.sync(step)
            print(f"STEP {json.dumps({'step': step, **report})}", flush=True)
        manager.close()

    def _place(self, step: int) -> Path:
        return self._served / f"loader-{step}.pt"

    def _step(self, step: int, rows: dict[str, Any], manager: Any) -> dict[str, Any]:
        """As `RayPPOTrainer.fit` takes a step, where no worker is asked."""
        samples = self._settings["samples"]
        batch = DataProto.from_single_dict(rows)
        batch.meta_info["temperature"] = self._config.actor_rollout_ref.rollout.temperature
        batch.non_tensor_batch["uid"] = np.array([str(uuid.uuid4()) for _ in range(len(batch.batch))], dtype=object)
        asked = self._trainer._get_gen_batch(batch)
        asked.meta_info["global_steps"] = step
        output = manager.generate_sequences(asked.repeat(repeat_times=samples, interleave=True))
        timing = output.meta_info.pop("timing")
        batch = batch.repeat(repeat_times=samples, interleave=True).union(output)
        batch.meta_info["global_token_num"] = torch.sum(batch.batch["attention_mask"], dim=-1).tolist()
        if any("image_grid_thw" in given for given in batch.non_tensor_batch["multi_modal_inputs"]):
            raise AssertionError("no image was asked for")
        rewards, _ = extract_reward(batch)
        logprobs = self._logprobs(batch)
        batch.batch["old_log_probs"] = logprobs.detach()
        metrics = calculate_debug_metrics(batch)
        batch.batch["token_level_scores"] = batch.batch["token_level_rewards"] = rewards
        batch = compute_advantage(
            batch, adv_estimator=self._config.algorithm.adv_estimator, num_repeat=samples, config=self._config.algorithm
        )
        metrics |= compute_data_metrics(batch, use_critic=False) | compute_timing_metrics(batch, timing)
        return {
            "rollouts": batch.non_tensor_batch["rolldeck_rollout"].tolist(),
            "rewards": rewards.sum(-1).tolist(),
            "metrics": {name: float(value) for name, value in metrics.items()},
            **self._update(batch, logprobs),
        }

    def _logprobs(self, batch: DataProto) -> torch.Tensor:
        width = batch.batch["responses"].shape[1]
        return self._policy.logprobs(batch.batch["input_ids"], batch.batch["attention_mask"], width)

    def _update(self, batch: DataProto, logprobs: torch.Tensor) -> dict[str, float]:
        """One optimizer step with VeRL's loss. `gap`: the largest |trainer - sampler| of a trained token's logprob."""
        mask = batch.batch["response_mask"]
        loss = self._loss(batch, logprobs)
        gap = ((logprobs.detach() - batch.batch["rollout_log_probs"]).abs() * mask).max()
        norm = self._policy.step(loss)
        return {"loss": loss.item(), "gradNorm": norm, "gap": gap.item(), "trained": int(mask.sum())}

    def _loss(self, batch: DataProto, logprobs: torch.Tensor) -> torch.Tensor:
        """VeRL's registered policy loss of the batch."""
        old, mask = batch.batch["old_log_probs"], batch.batch["response_mask"]
        loss_of = core_algos.get_policy_loss_fn("vanilla")
        loss, _ = loss_of(old, logprobs, batch.batch["advantages"], mask, "token-mean", self._actor)
        return loss


if __name__ == "__main__":
    torch.set_num_threads(1)
    torch.manual_seed(0)
    TrainLoop(json.loads(Path(sys.argv[1]).read_text())).run()
