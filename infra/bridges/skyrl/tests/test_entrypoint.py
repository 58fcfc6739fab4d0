"""SkyRL's experiment with our generator, as far as it is made without a cluster. Needs SkyRL."""

from __future__ import annotations

import importlib.util
import unittest
from types import SimpleNamespace

from rolldeck_driven.errors import BridgeError


def settings(eval_interval: int = -1, eval_before_train: bool = False, dynamic: str | None = None) -> SimpleNamespace:
    algorithm = SimpleNamespace(dynamic_sampling=SimpleNamespace(type=dynamic))
    trainer = SimpleNamespace(eval_interval=eval_interval, eval_before_train=eval_before_train, algorithm=algorithm)
    return SimpleNamespace(trainer=trainer, generator=SimpleNamespace(step_wise_trajectories=True))


@unittest.skipUnless(importlib.util.find_spec("skyrl"), "needs SkyRL")
class EntrypointTest(unittest.TestCase):
    def test_the_experiment_generates_with_the_run(self) -> None:
        from rolldeck_skyrl.entrypoint import RolldeckExperiment
        from skyrl.train.generators.base import GeneratorInterface

        experiment = RolldeckExperiment.__new__(RolldeckExperiment)
        experiment._run = {"url": "http://127.0.0.1:3000", "token": "rd_secret", "run_id": "r1"}
        generator = experiment.get_generator(settings(), SimpleNamespace(pad_token_id=7), None)
        self.assertIsInstance(generator, GeneratorInterface)

    def test_settings_that_a_driven_run_can_not_serve_are_refused(self) -> None:
        from rolldeck_skyrl.entrypoint import refuse_settings

        refuse_settings(settings())
        for wrong, message in [
            (settings(eval_interval=5), "eval_interval=-1"),
            (settings(eval_before_train=True), "eval_before_train=false"),
            (settings(dynamic="filter"), "dynamic_sampling.type=null"),
        ]:
            with self.subTest(message), self.assertRaisesRegex(BridgeError, message):
                refuse_settings(wrong)
