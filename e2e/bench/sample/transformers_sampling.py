"""Rollouts of several turns by `transformers`, greedy: `generate` one rollout after the other, or all of a turn in one
left-padded batch.

Reads {folder, rollouts: [{prompt, turns: [{observation, maxTokens}]}]} as JSON; a turn's prompt is all before it and
its observation. Prints {sequential, staticBatch}, each {seconds, outputs}: sampled tokens by rollout and turn.
"""

from __future__ import annotations

import json
import sys
import time

import torch
from transformers import AutoModelForCausalLM, StoppingCriteria

PAD, STOP = 259, 259

torch.set_num_threads(1)


class RowLimits(StoppingCriteria):
    """Each row of a batch ends at a length of its own; the others go on."""

    def __init__(self, start: int, limits: list[int]):
        self._ends = torch.tensor([start + limit for limit in limits])

    def __call__(self, input_ids: torch.Tensor, scores: object, **_: object) -> torch.Tensor:
        return (input_ids.shape[1] >= self._ends).to(input_ids.device)


def generate(model, prompts: list[list[int]], limits: list[int]) -> list[list[int]]:
    """Sampled tokens of each prompt, its stop token included."""
    width = max(len(prompt) for prompt in prompts)
    ids = torch.full((len(prompts), width), PAD)
    mask = torch.zeros_like(ids)
    for row, prompt in enumerate(prompts):
        ids[row, width - len(prompt) :] = torch.tensor(prompt)
        mask[row, width - len(prompt) :] = 1
    out = model.generate(
        input_ids=ids.to(model.device),
        attention_mask=mask.to(model.device),
        do_sample=False,
        max_new_tokens=max(limits),
        eos_token_id=STOP,
        pad_token_id=PAD,
        stopping_criteria=[RowLimits(width, limits)],
    )
    return [cut(row[width:].tolist(), limit) for row, limit in zip(out, limits, strict=True)]


def cut(tokens: list[int], limit: int) -> list[int]:
    tokens = tokens[:limit]
    return tokens[: tokens.index(STOP) + 1] if STOP in tokens else tokens


def play(model, rollouts: list[dict], batched: bool) -> dict:
    """@param batched: a turn of all rollouts at once, else one rollout's turns after one another"""
    started = time.perf_counter()
    outputs: list[list[list[int]]] = [[] for _ in rollouts]
    for group in [list(range(len(rollouts)))] if batched else [[at] for at in range(len(rollouts))]:
        histories = {at: list(rollouts[at]["prompt"]) for at in group}
        for turn in range(len(rollouts[group[0]]["turns"])):
            coming = [rollouts[at]["turns"][turn] for at in group]
            for at, each in zip(group, coming, strict=True):
                histories[at] += each["observation"]
            sampled = generate(model, [histories[at] for at in group], [each["maxTokens"] for each in coming])
            for at, tokens in zip(group, sampled, strict=True):
                histories[at] += tokens
                outputs[at].append(tokens)
    return {"seconds": time.perf_counter() - started, "outputs": outputs}


def main() -> None:
    asked = json.load(sys.stdin)
    options = {"dtype": torch.float32, "attn_implementation": "sdpa"}
    model = AutoModelForCausalLM.from_pretrained(asked["folder"], **options).eval()
    with torch.inference_mode():
        generate(model, [asked["rollouts"][0]["prompt"]], [4])
        result = {name: play(model, asked["rollouts"], name == "staticBatch") for name in ("sequential", "staticBatch")}
    print(json.dumps(result))


if __name__ == "__main__":
    main()
