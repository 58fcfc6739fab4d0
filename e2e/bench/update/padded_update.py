"""The same update by `transformers`: rows padded to the longest of their batch, an attention mask, PyTorch's AdamW. Weights are
float32; in bfloat16 PyTorch's autocast computes."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from rows import Row
from transformers import AutoModelForCausalLM


class PaddedUpdate:
    def __init__(
        self, folder: str, device: torch.device = torch.device("cpu"), compute: torch.dtype = torch.float32
    ):
        self._folder, self._device, self._compute = folder, device, compute
        self._model = self._fresh()
        self._optimiser = torch.optim.AdamW(
            self._model.parameters(), lr=1e-5, betas=(0.9, 0.95), eps=1e-8, weight_decay=0, fused=True
        )

    def _fresh(self):
        options = {"dtype": torch.float32, "attn_implementation": "sdpa"}
        return AutoModelForCausalLM.from_pretrained(self._folder, **options).to(self._device)

    def gradient(self, batches: list[list[Row]]) -> dict[str, torch.Tensor]:
        """By name."""
        model = self._fresh()
        self._backward(model, batches)
        return {name: parameter.grad for name, parameter in model.named_parameters()}

    def update(self, batches: list[list[Row]]) -> None:
        self._backward(self._model, batches)
        self._optimiser.step()
        self._optimiser.zero_grad()

    def _backward(self, model, batches: list[list[Row]]) -> None:
        """Importance-sampled policy gradient, mean over all trained tokens."""
        trained = sum(row.trained for batch in batches for row in batch)
        for batch in batches:
            mixed = self._compute != torch.float32
            with torch.autocast(self._device.type, self._compute if mixed else None, enabled=mixed):
                loss = _loss_sum(model, batch, self._device)
            (loss / trained).backward()


def _loss_sum(model, batch: list[Row], device: torch.device) -> torch.Tensor:
    shape = (len(batch), max(len(row.tokens) for row in batch))
    tokens, attended = torch.zeros(shape, dtype=torch.long), torch.zeros(shape, dtype=torch.long)
    mask, old, advantages = (torch.zeros(len(batch), shape[1] - 1) for _ in range(3))
    for at, row in enumerate(batch):
        length = len(row.tokens)
        tokens[at, :length] = torch.from_numpy(row.tokens)
        attended[at, :length] = 1
        mask[at, row.prompt - 1 : length - 1] = 1
        old[at, row.prompt - 1 : length - 1] = torch.from_numpy(row.logprobs)
        advantages[at] = row.advantage
    tokens, attended, mask, old, advantages = (x.to(device) for x in (tokens, attended, mask, old, advantages))
    logits = model(input_ids=tokens, attention_mask=attended, use_cache=False).logits[:, :-1]
    logprobs = -F.cross_entropy(logits.flatten(0, 1).float(), tokens[:, 1:].flatten(), reduction="none").view_as(mask)
    ratio = torch.where(mask != 0, logprobs - old, 0.0).exp()
    return -(ratio * advantages * mask).sum()
