"""VeRL's agent-loop manager over a driven run. The agent loop, tools, sandboxes and verifiers are Rolldeck's; the model
is sampled by VeRL's own engines, through the gateway here or at an address of theirs; the update is VeRL's."""

from __future__ import annotations

import asyncio
import os
from typing import Any

from rolldeck_driven.api import RolldeckApi, connection
from rolldeck_driven.errors import BridgeError
from rolldeck_driven.session import DrivenSession
from verl.protocol import DataProto
from verl.utils import hf_tokenizer
from verl.utils.fs import copy_to_local
from verl.utils.ray_utils import auto_await

from .asked_batch import asked_batch
from .data_proto import Widths, data_proto
from .sampler_gateway import SamplerGateway, listen_address


class RolldeckAgentLoopManager:
    """Named by `actor_rollout_ref.rollout.agent.agent_loop_manager_class`; made by `create`, as VeRL's own is.

    ROLLDECK_URL, ROLLDECK_TOKEN and ROLLDECK_RUN name the run, which has `stepSource: driven`. With
    ROLLDECK_SAMPLER_LISTEN (`<host>:<port>`) VeRL's engines answer there as /v1/completions, under
    ROLLDECK_SAMPLER_KEY if that is set; the run's `backend` names that address. ROLLDECK_LEASE_S is how long the run
    goes on without a sign of the trainer (60).

    @param config: VeRL's whole config
    @param llm_client: VeRL's client of its engines"""

    def __init__(
        self,
        config: Any,
        llm_client: Any,
        teacher_client: Any = None,
        reward_loop_worker_handles: Any = None,
        **others: Any,
    ):
        if "replay_buffer" in others:
            raise BridgeError("verl.trainer.main_ppo_sync hands batches over another way: use verl.trainer.main_ppo")
        if teacher_client is not None:
            raise BridgeError("distillation: a driven run gives no teacher's log-probabilities; switch it off")
        refuse_settings(config)
        self._rollout = config.actor_rollout_ref.rollout
        self._widths = Widths(self._rollout.prompt_length, self._rollout.response_length)
        self._pad_token_id = _tokenizer(config).pad_token_id
        self._api = RolldeckApi(**connection())
        self._session = DrivenSession(self._api, lease_s=float(os.environ.get("ROLLDECK_LEASE_S") or 60))
        # The reward comes with the rollout: VeRL's own reward workers have nothing to do.
        del reward_loop_worker_handles
        address = listen_address(os.environ)
        model = os.path.basename(config.actor_rollout_ref.model.path.rstrip("/"))
        self._gateway = None if address is None else SamplerGateway(llm_client, address, model)

    @classmethod
    @auto_await
    async def create(cls, *args: Any, **kwargs: Any) -> RolldeckAgentLoopManager:
        """@raises BridgeError for settings that can not be served, before anything is sampled"""
        manager = cls(*args, **kwargs)
        run = await asyncio.to_thread(manager._api.run)
        refuse_temperature(run, manager._rollout.temperature)
        if manager._gateway is not None:
            await asyncio.to_thread(manager._gateway.start)
        return manager

    @auto_await
    async def generate_sequences(self, prompts: DataProto) -> DataProto:
        """Rollouts of the batch, in its order.

        @raises BridgeError: InputBatchError, ApiError, UnreachableError, RunEndedError, BatchError"""
        asked = asked_batch(prompts)
        finished = await self._session.rollouts(asked)
        return data_proto(asked, finished, prompts.non_tensor_batch["uid"], self._widths, self._pad_token_id)

    def close(self) -> None:
        """No more signs of life, and no more samples."""
        self._session.close()
        if self._gateway is not None:
            self._gateway.close()


def refuse_settings(config: Any) -> None:
    """@raises BridgeError for what a driven run can not give"""
    if config.trainer.test_freq > 0 or config.trainer.get("val_before_train", True):
        raise BridgeError("set trainer.test_freq=-1 and trainer.val_before_train=false: evaluate in Rolldeck")
    if str(config.algorithm.adv_estimator) == "remax":
        raise BridgeError("algorithm.adv_estimator: remax wants greedy baselines, which a driven run does not give")


def refuse_temperature(run: dict[str, Any], temperature: float) -> None:
    """VeRL computes log-probabilities at its own temperature. @raises BridgeError when the run samples at another"""
    sampled = run["config"]["agent"]["sampling"]["temperature"]
    if abs(sampled - temperature) > 1e-6:
        raise BridgeError(
            f"actor_rollout_ref.rollout.temperature is {temperature} and the run samples at {sampled}: set both alike "
            "(agent.sampling.temperature in the run's config)"
        )


def _tokenizer(config: Any) -> Any:
    """As VeRL's entry point makes it; one without a padding token gets one."""
    model = config.actor_rollout_ref.model
    folder = copy_to_local(model.path, use_shm=model.get("use_shm", False))
    return hf_tokenizer(folder, trust_remote_code=config.data.get("trust_remote_code", False))
