"""One trainer of one driven run: it asks for a step's batch and waits until all of its rollouts have settled.

A trainer that is killed and started again asks for its step anew and gets the same rollouts, those that had finished
before it died among them: a request is idempotent by (run, trainer step), and is read from its beginning."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

from .api import RolldeckApi
from .batch import AskedBatch, Place
from .errors import ApiError, BatchError
from .lease import TrainerLease

log = logging.getLogger(__name__)

_PAGE = 64


def updates_before(step: int) -> int:
    """Policy version that serves a step where steps count from 1 and the engines are brought up to date after each."""
    return step - 1


class DrivenSession:
    """@param api: the run, which has `stepSource: driven`
    @param lease_s: how long the run goes on without a sign of the trainer, 5 to 3,600
    @param deadline_s: told to the run with each batch; None for none
    @param policy_version: version that the engines serve at a step; it may only grow
    @param asked_again: what to do when a step was asked for before with another request, in the trainer's own words"""

    def __init__(
        self,
        api: RolldeckApi,
        *,
        lease_s: float = 60.0,
        poll_s: float = 0.5,
        deadline_s: float | None = None,
        policy_version: Callable[[int], int] = updates_before,
        asked_again: str = "",
    ):
        self._api = api
        self._lease = TrainerLease(api, lease_s)
        self._poll_s = poll_s
        self._deadline_ms = None if deadline_s is None else int(deadline_s * 1000)
        self._policy_version = policy_version
        self._asked_again = asked_again

    async def rollouts(self, asked: AskedBatch) -> dict[Place, dict[str, Any]]:
        """Every rollout of the batch, as the API gives it.

        @raises BridgeError: ApiError, UnreachableError, RunEndedError, BatchError"""
        version = self._policy_version(asked.step)
        await asyncio.to_thread(self._lease.begin, version)
        batch_id = await asyncio.to_thread(self._request, asked, version)
        return await self._take(asked, batch_id)

    def close(self) -> None:
        """No more signs of life."""
        self._lease.close()

    def _request(self, asked: AskedBatch, version: int) -> str:
        try:
            return self._api.request_batch(asked.request(version, self._deadline_ms))
        except ApiError as error:
            if error.status == 409 and "asked for before" in error.detail:
                raise BatchError(
                    f"{error}. A step is asked for once: {self._asked_again}after a restart the data loader must give "
                    "the step the same rows (resume from the checkpoint before it)"
                ) from error
            raise

    async def _take(self, asked: AskedBatch, batch_id: str) -> dict[Place, dict[str, Any]]:
        place_of = {(instance.task_set, instance.index): place for place, instance in enumerate(asked.instances)}
        taken: dict[Place, dict[str, Any]] = {}
        cursor = 0
        while True:
            page = await asyncio.to_thread(self._api.read_batch, batch_id, cursor, _PAGE)
            for rollout in page["rollouts"]:
                instance = place_of.get((rollout["taskSet"], rollout["index"]))
                if instance is None:
                    raise BatchError(f"rollout {rollout['rolloutId']}: step {asked.step} did not name its instance")
                if (instance, rollout["sample"]) in taken:
                    raise BatchError(f"sample {rollout['sample']} of instance {rollout['instanceId']} came twice")
                taken[instance, rollout["sample"]] = rollout
            cursor = page["cursor"]
            if page["done"]:
                log.info("step %d: %d rollouts of batch %s", asked.step, len(taken), batch_id)
                return taken
            if page["state"] == "cancelled":
                raise BatchError(f"step {asked.step}: batch {batch_id} was cancelled")
            await asyncio.to_thread(self._lease.check)
            if not page["rollouts"]:
                await asyncio.sleep(self._poll_s)
