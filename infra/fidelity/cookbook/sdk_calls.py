"""Drives a Tinker server with the official client and prints what it got as one JSON line; nothing is judged here.

TINKER_API_KEY=tml-… python sdk_calls.py BASE_URL BASE_MODEL
"""
import json
import sys
import warnings

import tinker
import torch
from tinker import types

warnings.simplefilter("ignore")

TEXT = "What is 4 + 5? It is 9, as everyone knows."
SHORT = "Nothing else."
STEP = types.AdamParams(learning_rate=1e-2, eps=1e-8)


def supervised(tokens: list[int]) -> types.Datum:
    """A shifted row whose every token counts."""
    return types.Datum(
        model_input=types.ModelInput.from_ints(tokens[:-1]),
        loss_fn_inputs={"target_tokens": tokens[1:], "weights": [1.0] * (len(tokens) - 1)},
    )


def rollout(tokens: list[int], logprobs: list[float], advantage: float) -> types.Datum:
    """A shifted row as sampled, its first third a prompt."""
    seen = (len(tokens) - 1) // 3
    count = len(tokens) - 1
    return types.Datum(
        model_input=types.ModelInput.from_ints(tokens[:-1]),
        loss_fn_inputs={
            "target_tokens": tokens[1:],
            "logprobs": torch.tensor([0.0] * seen + logprobs[seen:]),
            "advantages": torch.tensor([0.0] * seen + [advantage] * (count - seen)),
        },
    )


def floats(tensor) -> list[float]:
    return tensor.to_torch().tolist()


def error_of(ask) -> dict:
    """Status and text of a refusal."""
    try:
        ask()
    except tinker.APIStatusError as error:
        return {"status": error.status_code, "body": error.body}
    return {"status": 200, "body": None}


def forward(client, data: list) -> dict:
    out = client.forward(data, "cross_entropy").result()
    return {"loss": out.metrics["loss:sum"], "logprobs": [floats(o["logprobs"]) for o in out.loss_fn_outputs]}


def steps_of_each_loss(client, row: list[int]) -> dict:
    """One update by each loss, from the log-probs that the server says itself."""
    found = {}
    for loss in ("importance_sampling", "ppo", "cispo"):
        before = forward(client, [supervised(row)])["logprobs"][0]
        data = [rollout(row, before, 1.0)]
        asked = client.forward_backward(data, loss)
        stepped = client.optim_step(types.AdamParams(learning_rate=1e-3, eps=1e-8))
        out = asked.result()
        stepped.result()
        after = forward(client, [supervised(row)])["logprobs"][0]
        seen = (len(row) - 1) // 3
        found[loss] = {
            "loss": out.metrics["loss:sum"],
            "gap": max(abs(a - b) for a, b in zip(floats(out.loss_fn_outputs[0]["logprobs"]), before, strict=True)),
            "raised": sum(after[seen:]) - sum(before[seen:]),
        }
    return found


def custom_loss(client, row: list[int]) -> dict:
    """A loss of our own, by its gradient: it must equal the server's cross entropy, whose sum it is."""

    def total(data, logprobs):
        value = -sum((part * torch.tensor(1.0)).sum() for part in logprobs)
        return value, {"mine": float(value.detach())}

    out = client.forward_backward_custom([supervised(row)], total).result()
    norm = client.optim_step(types.AdamParams(learning_rate=0.0)).result().metrics["grad_norm"]
    plain = client.forward_backward([supervised(row)], "cross_entropy").result()
    expected = client.optim_step(types.AdamParams(learning_rate=0.0)).result().metrics["grad_norm"]
    return {
        "loss": out.metrics["loss:sum"],
        "expectedLoss": plain.metrics["loss:sum"],
        "norm": norm,
        "expectedNorm": expected,
    }


def samples(client, sampler, prompt: list[int], stop: int) -> dict:
    asked = types.ModelInput.from_ints(prompt)
    drawn = types.SamplingParams(max_tokens=12, temperature=1.0, seed=5, stop=[stop])
    several = sampler.sample(asked, 3, drawn).result()
    greedy = sampler.sample(asked, 1, types.SamplingParams(max_tokens=8, temperature=0.0)).result().sequences[0]
    whole = prompt + greedy.tokens
    scored = sampler.compute_logprobs(types.ModelInput.from_ints(whole)).result()
    last = sampler.compute_logprobs(types.ModelInput.from_ints(whole), prompt_logprobs_last_n=8).result()
    top = sampler.sample(
        asked, 1, types.SamplingParams(max_tokens=1), include_prompt_logprobs=True, topk_prompt_logprobs=2
    ).result()
    return {
        "sequences": [
            {"tokens": s.tokens, "logprobs": s.logprobs, "stop": s.stop_reason, "id": s.sequence_id}
            for s in several.sequences
        ],
        "greedy": {"tokens": greedy.tokens, "logprobs": greedy.logprobs},
        "scored": scored,
        "lastScored": last,
        "trained": forward(client, [supervised(whole)])["logprobs"][0],
        "top": top.topk_prompt_logprobs[1],
        "topFirst": top.topk_prompt_logprobs[0],
    }


def main(base_url: str, base_model: str) -> None:
    service = tinker.ServiceClient(base_url=base_url, user_metadata={"purpose": "test"})
    rest = service.create_rest_client()
    client = service.create_lora_training_client(
        base_model, rank=4, seed=11, user_metadata={"renderer_name": "qwen3"}
    ).result()
    tokenizer = client.get_tokenizer()
    row, short = tokenizer.encode(TEXT), tokenizer.encode(SHORT)
    out: dict = {"capabilities": [m.model_name for m in rest.get_server_capabilities().result().supported_models]}
    out["info"] = client.get_info().model_dump()
    out["otherModel"] = error_of(lambda: service.create_lora_training_client("/etc", rank=4).result())
    out["rank"] = error_of(lambda: service.create_lora_training_client(base_model, rank=100_000).result())

    losses = []
    for _ in range(10):
        asked = client.forward_backward([supervised(row), supervised(short)], "cross_entropy")
        stepped = client.optim_step(STEP)
        losses.append(asked.result().metrics["loss:sum"])
        stepped.result()
    out["losses"] = losses
    out["each"] = steps_of_each_loss(client, row)
    out["custom"] = custom_loss(client, row)
    sampler = client.save_weights_and_get_sampling_client().result()
    stop = tokenizer.convert_tokens_to_ids("<|im_end|>")
    out["samples"] = samples(client, sampler, row[:12], stop)

    state = client.save_state("kept", ttl_seconds=3600, user_metadata={"note": "mine"}).result().path
    named = client.save_weights_for_sampler("kept").result().path
    stored = service.create_sampling_client(model_path=named).result()
    again = stored.sample(types.ModelInput.from_ints(row[:12]), 1, types.SamplingParams(max_tokens=8, temperature=0.0))
    out["stored"] = {"tokens": again.result().sequences[0].tokens, "base": stored.get_base_model()}
    out["weightsInfo"] = rest.get_weights_info_by_tinker_path(state).result().model_dump(exclude_none=True)
    run = rest.get_training_run_by_tinker_path(state).result()
    out["run"] = {"lora": run.is_lora, "rank": run.lora_rank, "metadata": run.user_metadata}
    listed = rest.list_checkpoints(run.training_run_id).result().checkpoints
    out["checkpoints"] = sorted(each.checkpoint_id for each in listed)
    out["notes"] = [each.user_metadata for each in listed if each.checkpoint_id == "weights/kept"]

    second = tinker.ServiceClient(base_url=base_url)
    resumed = second.create_training_client_from_state_with_optimizer(state).result()
    fresh = second.create_training_client_from_state(state).result()
    legacy = second.create_lora_training_client(base_model, rank=4).result()
    legacy.load_state_with_optimizer(state).result()
    out["resumed"] = []
    for each in (client, resumed, legacy, fresh):
        for _ in range(2):
            each.forward_backward([supervised(row)], "cross_entropy").result()
            each.optim_step(STEP).result()
        out["resumed"].append(forward(each, [supervised(short)])["loss"])
    second.close("success").result()
    rest.delete_checkpoint_from_tinker_path(named).result()
    left = rest.list_checkpoints(run.training_run_id).result().checkpoints
    out["left"] = sorted(each.checkpoint_id for each in left)
    print("RESULT " + json.dumps(out))


if __name__ == "__main__":
    main(*sys.argv[1:])
