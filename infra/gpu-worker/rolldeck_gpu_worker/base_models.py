"""Base models: folders that hold a `config.json`, with or without weights, each under a name that the operator chose.

A folder below a configured root is named by its path there (`quickstart`, `Qwen/Qwen3-0.6B`); others are named one by one, and
such a name may look like a path, because some clients read a tokenizer from the name they ask for. A name that a client sends
is only ever compared with these: it is never opened as a path."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import torch
from safetensors import safe_open
from safetensors.torch import load_file

from .errors import WorkerError, bad_input
from .lora import LoraAdapter, LoraSpec
from .model_config import ModelConfig, parse_any_config
from .policy_weights import PolicyWeights
from .token_bytes import byte_level_decoder
from .weights import Weights, lora_modules, parameter_count, seeded_flat

_SEGMENT = re.compile(r"^[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}$")
# Of fresh base weights that adapters train over: one base for all of them.
BASE_SEED = 0


@dataclass(frozen=True)
class BaseModel:
    name: str
    folder: Path
    config: ModelConfig
    # What its forward pass computes in.
    compute: torch.dtype = torch.float32
    _frozen: dict[tuple[torch.device, torch.dtype], PolicyWeights] = field(default_factory=dict, compare=False, repr=False)

    @cached_property
    def parameters(self) -> int:
        if self.config.runner == "qwen3":
            return parameter_count(self.config)
        if not self.weight_files:
            return sum(math.prod(shape) for shape in self._structure.shapes.values())
        total = 0
        for file in self.weight_files:
            with safe_open(file, "pt") as tensors:
                total += sum(math.prod(tensors.get_slice(name).get_shape()) for name in tensors.keys())
        return total

    @property
    def weight_files(self) -> list[Path]:
        return sorted(self.folder.glob("*.safetensors"))

    @cached_property
    def token_bytes(self) -> Callable[[int], bytes] | None:
        """Bytes of a token; None when the tokenizer is not byte level."""
        return byte_level_decoder(self.folder)

    @cached_property
    def _structure(self):
        # Slow to import, and not needed for the own forward pass.
        from .transformers_model import TransformersStructure

        return TransformersStructure(self.folder, self.config)

    def make_weights(self, seed: int, device: torch.device, with_grad: bool) -> PolicyWeights:
        """The folder's weights, or fresh ones from `seed` when it has none: float32, computing as this base does."""
        weights = self._made(seed, device, with_grad)
        weights.compute = self.compute
        return weights

    def _made(self, seed: int, device: torch.device, with_grad: bool) -> PolicyWeights:
        if self.config.runner == "transformers":
            return self._structure.make_weights(seed, device, with_grad)
        weights = Weights(self.config, seeded_flat(self.config, seed, device), with_grad)
        if self.weight_files:
            tensors: dict[str, torch.Tensor] = {}
            for file in self.weight_files:
                tensors |= load_file(file)
            weights.load_hf(tensors)
        return weights

    def frozen(self, device: torch.device, dtype: torch.dtype | None = None) -> PolicyWeights:
        """Weights that nobody trains: one copy for the base's sampling sessions and all its adapters. Engine thread.

        @param dtype: what they are kept in; None: what this base computes in"""
        key = (device, dtype or self.compute)
        if key not in self._frozen:
            made = self._made(BASE_SEED, device, with_grad=False)
            made.compute = key[1]
            self._frozen[key] = made if made.flat.dtype == key[1] else made.snapshot()
        return self._frozen[key]

    def make_adapted(
        self, spec: LoraSpec, seed: int, device: torch.device, with_grad: bool, dtype: torch.dtype | None = None
    ) -> PolicyWeights:
        """The frozen base under a fresh adapter; the adapter is float32."""
        base = self.frozen(device, dtype)
        transformers = self.config.runner == "transformers"
        modules = self._structure.lora_modules(spec) if transformers else lora_modules(self.config, spec)
        adapter = LoraAdapter(spec, modules, device, with_grad)
        adapter.initialise(seed)
        if transformers:
            return self._structure.wrap(base.flat, False, adapter)
        return Weights(self.config, base.flat, adapter=adapter)

    def make_for(self, spec: LoraSpec | None, seed: int, device: torch.device, with_grad: bool) -> PolicyWeights:
        """All weights, or an adapter over the frozen ones."""
        if spec is None:
            return self.make_weights(seed, device, with_grad)
        return self.make_adapted(spec, seed, device, with_grad)


class BaseModels:
    """@param roots: folders searched in order; an earlier root wins. @param named: folders by name; they win over roots
    @param compute: what forward passes compute in"""

    def __init__(
        self, roots: list[Path], named: dict[str, Path] | None = None, compute: torch.dtype = torch.float32
    ):
        self._compute = compute
        self._roots = [root.resolve() for root in roots if root.is_dir()]
        self._named = named or {}
        self._known: dict[str, BaseModel] = {}

    def get(self, name: object) -> BaseModel:
        """@raises WorkerError bad_input for a name that is not served, or a model this worker can not run."""
        if isinstance(name, str) and name in self._known:
            return self._known[name]
        folders = self._folders()
        if not isinstance(name, str) or name not in folders:
            served = ", ".join(model.name for model in self.all()) or "none"
            raise bad_input(f"unknown base model {str(name)[:200]!r}; served: {served}", "base_model")
        folder = folders[name]
        try:
            raw = json.loads((folder / "config.json").read_text())
        except ValueError as error:
            raise bad_input(f"{name}: config.json is not JSON: {error}", "base_model") from error
        self._known[name] = BaseModel(name, folder, parse_any_config(raw), self._compute)
        return self._known[name]

    def all(self) -> list[BaseModel]:
        """Every model that this worker can run."""
        found: list[BaseModel] = []
        for name in self._folders():
            try:
                found.append(self.get(name))
            except (WorkerError, OSError):
                # A folder that can't be run is not offered; asking for it says why.
                continue
        return found

    def _folders(self) -> dict[str, Path]:
        """Every served name and its folder. Roots are read anew: folders may be added while the worker runs."""
        folders = {name: folder for name, folder in self._named.items() if (folder / "config.json").is_file()}
        for root in self._roots:
            patterns = ("*/config.json", "*/*/config.json", "*/*/*/config.json")
            for file in (file for pattern in patterns for file in sorted(root.glob(pattern))):
                segments = file.parent.relative_to(root).parts
                # A link must not lead out of its root.
                if all(map(_SEGMENT.match, segments)) and file.parent.resolve().is_relative_to(root):
                    folders.setdefault("/".join(segments), file.parent.resolve())
        return folders
