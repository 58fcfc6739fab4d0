"""What the manager refuses before anything is sampled. Needs VeRL."""

from __future__ import annotations

import importlib.util
import unittest

from rolldeck_driven.errors import BridgeError


@unittest.skipUnless(importlib.util.find_spec("verl"), "needs VeRL")
class ManagerTest(unittest.TestCase):
    def config(self, **trainer):
        from omegaconf import OmegaConf

        settings = {"test_freq": -1, "val_before_train": False, **trainer}
        return OmegaConf.create({"trainer": settings, "algorithm": {"adv_estimator": "grpo"}})

    def test_settings_that_a_driven_run_can_not_serve_are_refused(self) -> None:
        from rolldeck_verl.manager import RolldeckAgentLoopManager, refuse_settings

        refuse_settings(self.config())
        remax = self.config()
        remax.algorithm.adv_estimator = "remax"
        for wrong, message in [
            (self.config(test_freq=5), "test_freq=-1"),
            (self.config(val_before_train=True), "val_before_train=false"),
            (remax, "greedy baselines"),
        ]:
            with self.subTest(message), self.assertRaisesRegex(BridgeError, message):
                refuse_settings(wrong)
        kinds = [({"replay_buffer": object()}, "main_ppo_sync"), ({"teacher_client": {}}, "distillation")]
        for others, message in kinds:
            with self.subTest(message), self.assertRaisesRegex(BridgeError, message):
                RolldeckAgentLoopManager.create(config=self.config(), llm_client=None, **others)

    def test_a_run_that_samples_at_another_temperature_is_refused(self) -> None:
        from rolldeck_verl.manager import refuse_temperature

        run = {"config": {"agent": {"sampling": {"temperature": 0.7}}}}
        refuse_temperature(run, 0.7)
        with self.assertRaisesRegex(BridgeError, "is 1.0 and the run samples at 0.7"):
            refuse_temperature(run, 1.0)
