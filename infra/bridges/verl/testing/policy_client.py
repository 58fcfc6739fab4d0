"""In place of VeRL's engines: its client, answered by a server of /v1/completions."""

from __future__ import annotations

from typing import Any

import aiohttp
from verl.workers.rollout.llm_server import LLMServerClient
from verl.workers.rollout.replica import TokenOutput


class PolicyClient(LLMServerClient):
    """@param url: the server's address"""

    def __init__(self, config: Any, url: str):
        super().__init__(config)
        self._url = url

    async def generate(
        self, request_id: str, *, prompt_ids: list[int], sampling_params: dict[str, Any], **_others: Any
    ) -> TokenOutput:
        """As VeRL's own, which asks its engines by Ray."""
        named = {name: value for name, value in sampling_params.items() if value is not None}
        body = {**named, "model": "policy", "prompt": prompt_ids, "logprobs": 1, "return_token_ids": True}
        headers = {"x-rolldeck-affinity": request_id}
        async with aiohttp.ClientSession() as session:
            async with session.post(f"{self._url}/v1/completions", json=body, headers=headers) as answer:
                if answer.status != 200:
                    raise RuntimeError(f"{answer.status}: {await answer.text()}")
                [choice] = (await answer.json())["choices"]
        logprobs = choice["logprobs"]["token_logprobs"]
        return TokenOutput(token_ids=choice["token_ids"], log_probs=logprobs, stop_reason="completed")
