"""In place of a trainer's sharded workers, one torch model, and in place of its weight sync, a folder of weights that
the GPU worker serves. For the loops of the bridges' tests; a second start goes on after the last step that was
synced."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import torch
from safetensors.torch import save_file
from transformers import AutoModelForCausalLM


class ServedPolicy:
    """@param base: model folder of version 0
    @param served: one folder for each version, `policy-<version>`, and the file `serving`"""

    def __init__(self, base: Path, served: Path, learning_rate: float):
        self._base, self._served = base, served
        serving = served / "serving"
        self.steps = int(serving.read_text()) if serving.exists() else 0
        folder = base if self.steps == 0 else served / f"policy-{self.steps}"
        self.model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
        self.optimizer: torch.optim.Optimizer = torch.optim.SGD(self.model.parameters(), lr=learning_rate)
        if not serving.exists():
            self.sync(0)

    def logprobs(self, sequences: torch.Tensor, attention: torch.Tensor, actions: int) -> torch.Tensor:
        """Of the last `actions` tokens, [rows, actions]; padding may be on both sides."""
        return logprobs_of(self.model, sequences, attention, actions)

    def step(self, loss: torch.Tensor) -> float:
        """One optimizer step. @returns the gradient's norm"""
        self.optimizer.zero_grad()
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        return norm.item()

    def sync(self, version: int) -> None:
        """The weights to the sampler: a whole folder first, then the word that it serves."""
        folder = self._served / f"policy-{version}"
        shutil.rmtree(folder, ignore_errors=True)
        made = self._served / f".{folder.name}"
        shutil.copytree(self._base, made, dirs_exist_ok=True)
        # Shared with the embedding.
        tensors = {name: tensor for name, tensor in self.model.state_dict().items() if name != "lm_head.weight"}
        save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, made / "model.safetensors")
        os.rename(made, folder)
        (self._served / ".serving.part").write_text(str(version))
        os.rename(self._served / ".serving.part", self._served / "serving")
        self.steps = version


def logprobs_of(model: torch.nn.Module, sequences: torch.Tensor, attention: torch.Tensor, actions: int) -> torch.Tensor:
    """By a causal LM of transformers, of the last `actions` tokens, [rows, actions]; padding may be on both sides."""
    positions = (attention.cumsum(-1) - 1).masked_fill(attention == 0, 1)
    logits = model(input_ids=sequences, attention_mask=attention, position_ids=positions).logits
    known = torch.log_softmax(logits[:, :-1], dim=-1).gather(-1, sequences[:, 1:, None]).squeeze(-1)
    return known[:, -actions:]
