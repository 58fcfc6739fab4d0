"""SkyRL's generator over a driven run. The agent loop, tools, sandboxes and verifiers are Rolldeck's; the model is
sampled where the run's config says, usually at the HTTP endpoint of SkyRL's own engines; the update is SkyRL's."""

from __future__ import annotations

from typing import Any

from rolldeck_driven.api import RolldeckApi, connection
from rolldeck_driven.session import DrivenSession
from skyrl.train.generators.base import GeneratorInput, GeneratorInterface, GeneratorOutput

from .asked_batch import asked_batch
from .generator_output import generator_output


class RolldeckGenerator(GeneratorInterface):
    """@param api: the run, which has `stepSource: driven`
    @param step_wise: SkyRL's `generator.step_wise_trajectories`
    @param pad_token_id: the tokenizer's; stands for a rollout that has no token at all
    @param options: `lease_s`, `poll_s`, `deadline_s`, `policy_version` of `DrivenSession`"""

    def __init__(self, api: RolldeckApi, *, step_wise: bool = False, pad_token_id: int = 0, **options: Any):
        asked_again = "set trainer.algorithm.dynamic_sampling.type=null; "
        self._session = DrivenSession(api, asked_again=asked_again, **options)
        self._step_wise = step_wise
        self._pad_token_id = pad_token_id

    @classmethod
    def from_environment(cls, **options: Any) -> RolldeckGenerator:
        """From ROLLDECK_URL, ROLLDECK_TOKEN and ROLLDECK_RUN."""
        return cls(RolldeckApi(**connection()), **options)

    async def generate(self, input_batch: GeneratorInput) -> GeneratorOutput:
        """Rollouts of the batch, in its order.

        @raises BridgeError: InputBatchError, ApiError, UnreachableError, RunEndedError, BatchError"""
        asked = asked_batch(input_batch)
        finished = await self._session.rollouts(asked)
        ids = input_batch["trajectory_ids"]
        return generator_output(asked, finished, ids, step_wise=self._step_wise, pad_token_id=self._pad_token_id)

    def close(self) -> None:
        """No more signs of life."""
        self._session.close()
