"""A LoRA checkpoint merged into its base, some rows at a time: W + (alpha / rank) · B A (arXiv:2106.09685 §4.1).

Invariant: of the base no more than a few rows are in memory, where its folder holds weights under the names that the adapter's
modules go by; else the base is loaded whole, which is the case of random weights and of folders in an older layout."""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors import safe_open
from safetensors.torch import load_file

from .base_models import BaseModel
from .checkpoints import Checkpoint
from .lora import UNEMBED, adapted_modules, low_ranks_of
from .tar_stream import PART_BYTES, TarEntry

_EMBED, _HEAD = "model.embed_tokens.weight", f"{UNEMBED}.weight"
_READABLE = ("F32", "F16", "BF16")


@dataclass(frozen=True)
class RowTensor:
    """A float32 tensor made of rows: `rows(start, end)` along its first dimension."""

    shape: tuple[int, ...]
    rows: Callable[[int, int], torch.Tensor]

    @property
    def bytes(self) -> int:
        return 4 * math.prod(self.shape)

    def parts(self) -> Iterator[bytes]:
        height, width = (self.shape[0], math.prod(self.shape[1:])) if self.shape else (1, 1)
        step = max(1, PART_BYTES // (4 * max(1, width)))
        for start in range(0, height, step):
            yield self.rows(start, min(start + step, height)).contiguous().numpy().tobytes()


@dataclass(frozen=True)
class Merged:
    """`untied`: the head is adapted and no longer the embedding."""

    tensors: dict[str, RowTensor]
    untied: bool


def merged_tensors(checkpoint: Checkpoint, base: BaseModel) -> Merged:
    """What a merged checkpoint holds by Hugging Face name. Nothing is computed before it is asked for."""
    stored = load_file(checkpoint.folder / "adapter_model.safetensors")
    modules = adapted_modules(stored)
    untied = base.config.tied and UNEMBED in modules
    found = _in_files(base, modules, untied)
    if found is None:
        return _in_memory(checkpoint, base, stored)
    for module, low_rank in low_ranks_of(checkpoint.lora, stored).items():
        found[f"{module}.weight"] = _added(found[f"{module}.weight"], low_rank.rows)
    return Merged(found, untied)


def _added(base: RowTensor, addition: Callable[[int, int], torch.Tensor]) -> RowTensor:
    return RowTensor(base.shape, lambda start, end: base.rows(start, end) + addition(start, end))


def _in_files(base: BaseModel, modules: set[str], untied: bool) -> dict[str, RowTensor] | None:
    """The base's tensors where its files hold them by the names that are needed; None where they do not."""
    found: dict[str, RowTensor] = {}
    for file in base.weight_files:
        with safe_open(file, "pt") as tensors:
            for name in tensors.keys():
                part = tensors.get_slice(name)
                if part.get_dtype() not in _READABLE or not part.get_shape():
                    return None
                found[name] = RowTensor(tuple(part.get_shape()), _file_rows(file, name))
    if base.config.tied:
        # Some folders hold the embedding twice.
        found.pop(_HEAD, None)
        if untied and _EMBED in found:
            found[_HEAD] = found[_EMBED]
    return found if found and all(f"{module}.weight" in found for module in modules) else None


def _file_rows(file: Path, name: str) -> Callable[[int, int], torch.Tensor]:
    def rows(start: int, end: int) -> torch.Tensor:
        with safe_open(file, "pt") as tensors:
            return tensors.get_slice(name)[start:end].float()

    return rows


def _in_memory(checkpoint: Checkpoint, base: BaseModel, stored: dict[str, torch.Tensor]) -> Merged:
    adapted = base.make_adapted(checkpoint.lora, 0, torch.device("cpu"), with_grad=False, dtype=torch.float32)
    adapted.load_stored(stored)
    whole = adapted.snapshot()
    tensors = {name: RowTensor(tuple(view.shape), _view_rows(view)) for name, view in whole.hf_views().items()}
    return Merged(tensors, untied=whole.config.tied != base.config.tied)


def _view_rows(view: torch.Tensor) -> Callable[[int, int], torch.Tensor]:
    return lambda start, end: view[start:end] if view.dim() else view


def safetensors_entry(name: str, tensors: dict[str, RowTensor]) -> TarEntry:
    """A safetensors file: the length of its header, the header, then the tensors one after the other."""
    header: dict = {"__metadata__": {"format": "pt"}}
    offset = 0
    for key, tensor in sorted(tensors.items()):
        header[key] = {"dtype": "F32", "shape": tensor.shape, "data_offsets": [offset, offset + tensor.bytes]}
        offset += tensor.bytes
    text = json.dumps(header, separators=(",", ":")).encode()
    # Tensors begin at a multiple of 8 bytes.
    text += b" " * (-len(text) % 8)
    head = struct.pack("<Q", len(text)) + text

    def parts() -> Iterator[bytes]:
        yield head
        for _, tensor in sorted(tensors.items()):
            yield from tensor.parts()

    return TarEntry(name, len(head) + offset, parts)
