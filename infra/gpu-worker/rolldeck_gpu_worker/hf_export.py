"""Exports a checkpoint as a Hugging Face folder in a tar file: config, weights, tokenizer and chat template."""

from __future__ import annotations

import hashlib
import io
import tarfile
from pathlib import Path

from .base_models import BaseModel
from .checkpoints import Checkpoint

# What a model folder may hold beside its weights and config.
_TOKENIZER_FILES = (
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "chat_template.jinja",
    "vocab.json",
    "merges.txt",
    "generation_config.json",
)


def export_hf(checkpoint: Checkpoint, base: BaseModel, target: Path) -> str:
    """Writes the tar to `target` and returns its sha256. The same checkpoint always gives the same bytes."""
    with tarfile.open(target, "w", format=tarfile.PAX_FORMAT) as tar:
        for name in ("config.json", *_TOKENIZER_FILES):
            if (base.folder / name).is_file():
                _add(tar, name, (base.folder / name).read_bytes())
        _add(tar, "model.safetensors", (checkpoint.folder / "model.safetensors").read_bytes())
    digest = hashlib.sha256()
    with open(target, "rb") as file:
        while part := file.read(1 << 20):
            digest.update(part)
    return digest.hexdigest()


def _add(tar: tarfile.TarFile, name: str, content: bytes) -> None:
    entry = tarfile.TarInfo(f"{name}")
    entry.size = len(content)
    entry.mode = 0o644
    tar.addfile(entry, io.BytesIO(content))
