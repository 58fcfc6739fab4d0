"""Base models: folders under the configured roots that hold a `config.json`, with or without weights.

A name is a path below a root (`quickstart`, `Qwen/Qwen3-0.6B`). Names are checked and the resolved folder must lie
inside its root, so no request can reach another file."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import torch
from safetensors.torch import load_file

from .errors import bad_input
from .model_config import ModelConfig, parse_model_config
from .token_bytes import byte_level_decoder
from .weights import Weights, parameter_count, seeded_flat

_SEGMENT = re.compile(r"^[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}$")


@dataclass(frozen=True)
class BaseModel:
    name: str
    folder: Path
    config: ModelConfig

    @cached_property
    def parameters(self) -> int:
        return parameter_count(self.config)

    @cached_property
    def token_bytes(self) -> Callable[[int], bytes] | None:
        """Bytes of a token; None when the tokenizer is not byte level."""
        return byte_level_decoder(self.folder)

    def make_weights(self, seed: int, device: torch.device, with_grad: bool) -> Weights:
        """The folder's weights, or fresh ones from `seed` when it has none."""
        files = sorted(self.folder.glob("*.safetensors"))
        flat = seeded_flat(self.config, seed, device)
        weights = Weights(self.config, flat, with_grad)
        if files:
            tensors: dict[str, torch.Tensor] = {}
            for file in files:
                tensors |= load_file(file)
            weights.load_hf(tensors)
        return weights


class BaseModels:
    """@param roots: folders searched in order; an earlier root wins."""

    def __init__(self, roots: list[Path]):
        self._roots = [root.resolve() for root in roots if root.is_dir()]
        self._known: dict[str, BaseModel] = {}

    def get(self, name: object) -> BaseModel:
        """@raises WorkerError bad_input for a bad or unknown name, or a model this worker can not run."""
        segments = name.split("/") if isinstance(name, str) else []
        if not 1 <= len(segments) <= 3 or not all(_SEGMENT.match(s) for s in segments):
            raise bad_input("must be the name of a model folder", "base_model")
        if name in self._known:
            return self._known[name]
        for root in self._roots:
            folder = root.joinpath(*segments).resolve()
            if folder.is_relative_to(root) and (folder / "config.json").is_file():
                raw = json.loads((folder / "config.json").read_text())
                self._known[name] = BaseModel(name, folder, parse_model_config(raw))
                return self._known[name]
        known = ", ".join(model.name for model in self.all()) or "none"
        raise bad_input(f"unknown base model {name!r}; known: {known}", "base_model")

    def all(self) -> list[BaseModel]:
        """Every model under the roots that this worker can run."""
        found: dict[str, BaseModel] = {}
        for root in self._roots:
            for file in sorted([*root.glob("*/config.json"), *root.glob("*/*/config.json")]):
                name = file.parent.relative_to(root).as_posix()
                try:
                    found.setdefault(name, self.get(name))
                except Exception:  # noqa: BLE001 - a folder that can't be run is not offered; asking for it says why
                    continue
        return list(found.values())
