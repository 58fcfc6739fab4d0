"""SkyRL's own entry point with Rolldeck's generator: `python -m rolldeck_skyrl.entrypoint <SkyRL's overrides>`.

ROLLDECK_URL, ROLLDECK_TOKEN and ROLLDECK_RUN are read where it is started and go to the trainer as an argument."""

from __future__ import annotations

import sys
from typing import Any

import ray
from rolldeck_driven.api import RolldeckApi, connection
from rolldeck_driven.errors import BridgeError
from skyrl.train.config import SkyRLTrainConfig
from skyrl.train.entrypoints.main_base import BasePPOExp
from skyrl.train.utils import validate_cfg
from skyrl.train.utils.utils import initialize_ray

from .generator import RolldeckGenerator


class RolldeckExperiment(BasePPOExp):
    """@param run: `url`, `token` and `run_id`"""

    def __init__(self, cfg: SkyRLTrainConfig, run: dict[str, str]):
        refuse_settings(cfg)
        self._run = run
        super().__init__(cfg)

    def get_generator(self, cfg: Any, tokenizer: Any, inference_engine_client: Any) -> RolldeckGenerator:
        """The engines are Rolldeck's to ask, by the address in the run's config."""
        return RolldeckGenerator(
            RolldeckApi(**self._run),
            step_wise=cfg.generator.step_wise_trajectories,
            pad_token_id=tokenizer.pad_token_id or 0,
        )


def refuse_settings(cfg: Any) -> None:
    """@raises BridgeError for what a driven run can not give, before anything is started"""
    if cfg.trainer.eval_interval > 0 or cfg.trainer.eval_before_train:
        raise BridgeError("set trainer.eval_interval=-1 and trainer.eval_before_train=false: evaluate in Rolldeck")
    if cfg.trainer.algorithm.dynamic_sampling.type is not None:
        raise BridgeError("set trainer.algorithm.dynamic_sampling.type=null: a step is asked for once")


@ray.remote(num_cpus=1)
def train(cfg: SkyRLTrainConfig, run: dict[str, str]) -> None:
    RolldeckExperiment(cfg, run).run()


def main() -> None:
    cfg = SkyRLTrainConfig.from_cli_overrides(sys.argv[1:])
    validate_cfg(cfg)
    refuse_settings(cfg)
    run = connection()
    initialize_ray(cfg)
    ray.get(train.remote(cfg, run))


if __name__ == "__main__":
    main()
