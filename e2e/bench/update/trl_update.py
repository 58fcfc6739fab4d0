"""The same update by TRL: the loss of `GRPOTrainer` over its own forward pass, prompts padded left and completions
right.

Reads {folder, seed, rows, cap, batch} as JSON, prints {seconds}. Runs in TRL's environment (infra/fidelity/trl).
"""

from __future__ import annotations

import json
import sys
import tempfile
import time

import torch
from datasets import Dataset
from rows import VOCABULARY, Row, in_batches, make_rows
from transformers import AutoModelForCausalLM, AutoTokenizer
from trl import GRPOConfig, GRPOTrainer

torch.set_num_threads(1)


def make_trainer(folder: str, out: str, batch: int, mixed: bool = False, use_cpu: bool = True) -> GRPOTrainer:
    """A trainer of one process; what it would sample is never asked for. @param mixed: computes in bfloat16"""
    arguments = GRPOConfig(
        output_dir=out,
        use_cpu=use_cpu,
        bf16=mixed,
        report_to=[],
        per_device_train_batch_size=batch,
        num_generations=2,
        gradient_checkpointing=False,
        beta=0.0,
        loss_type="dapo",
    )
    trainer = GRPOTrainer(
        model=AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32),
        reward_funcs=lambda completions, **_: [0.0 for _ in completions],
        args=arguments,
        train_dataset=Dataset.from_list([{"prompt": "a"}, {"prompt": "b"}]),
        processing_class=AutoTokenizer.from_pretrained(folder),
    )
    trainer.model.eval()
    return trainer


def padded(parts: list[torch.Tensor], left: bool) -> tuple[torch.Tensor, torch.Tensor]:
    """Parts in one tensor, and where they are in it: 1, else 0."""
    longest = max(len(part) for part in parts)
    values = torch.zeros(len(parts), longest, dtype=parts[0].dtype)
    mask = torch.zeros(len(parts), longest, dtype=torch.long)
    for at, part in enumerate(parts):
        place = slice(longest - len(part), longest) if left else slice(0, len(part))
        values[at, place] = part
        mask[at, place] = 1
    return values, mask


def inputs_of(batch: list[Row], trained: int) -> dict:
    tokens = [torch.from_numpy(row.tokens) for row in batch]
    prompt_ids, prompt_mask = padded([t[: row.prompt] for t, row in zip(tokens, batch, strict=True)], left=True)
    ids, mask = padded([t[row.prompt :] for t, row in zip(tokens, batch, strict=True)], left=False)
    old, _ = padded([torch.from_numpy(row.logprobs) for row in batch], left=False)
    return {
        "prompt_ids": prompt_ids,
        "prompt_mask": prompt_mask,
        "completion_ids": ids,
        "completion_mask": mask,
        "advantages": torch.tensor([row.advantage for row in batch]),
        "old_per_token_logps": old,
        "num_items_in_batch": torch.tensor(trained),
    }


def update(trainer: GRPOTrainer, optimiser: torch.optim.Optimizer, batches: list[list[Row]]) -> None:
    trained = sum(row.trained for batch in batches for row in batch)
    for batch in batches:
        inputs = {name: value.to(trainer.model.device) for name, value in inputs_of(batch, trained).items()}
        with trainer.accelerator.autocast():
            loss = trainer._compute_loss(trainer.model, inputs)
        loss.backward()
    optimiser.step()
    optimiser.zero_grad()


def main() -> None:
    asked = json.load(sys.stdin)
    rows = make_rows(asked["seed"], asked["rows"], asked["cap"], VOCABULARY)
    batches = in_batches(rows, asked["batch"], by_length=False)
    with tempfile.TemporaryDirectory(prefix="rolldeck-bench-trl-") as out:
        trainer = make_trainer(asked["folder"], out, asked["batch"])
        optimiser = torch.optim.AdamW(
            trainer.model.parameters(), lr=1e-5, betas=(0.9, 0.95), eps=1e-8, weight_decay=0, fused=True
        )
        update(trainer, optimiser, in_batches(rows, asked["batch"], by_length=True)[-1:])
        started = time.perf_counter()
        update(trainer, optimiser, batches)
        elapsed = time.perf_counter() - started
    print(json.dumps({"seconds": elapsed}))


if __name__ == "__main__":
    main()
