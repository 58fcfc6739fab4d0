"""A checkpoint as a tar: of a Hugging Face folder (config, weights, tokenizer and chat template), or, of what a LoRA checkpoint
holds, of a PEFT adapter folder."""

from __future__ import annotations

import json

from safetensors import safe_open

from .base_models import BaseModel
from .checkpoints import Checkpoint
from .errors import bad_input
from .lora import peft_config
from .merged_tensors import merged_tensors, safetensors_entry
from .tar_stream import TarStream, bytes_entry, file_entry

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


def export_hf(checkpoint: Checkpoint, base: BaseModel) -> TarStream:
    """The same checkpoint always gives the same bytes. A LoRA checkpoint is merged into its base's weights."""
    config = (base.folder / "config.json").read_bytes()
    if checkpoint.lora is None:
        weights = file_entry("model.safetensors", checkpoint.folder / "model.safetensors")
    else:
        merged = merged_tensors(checkpoint, base)
        weights = safetensors_entry("model.safetensors", merged.tensors)
        if merged.untied:
            config = json.dumps({**json.loads(config), "tie_word_embeddings": False}, indent=1).encode()
    present = [name for name in _TOKENIZER_FILES if (base.folder / name).is_file()]
    tokenizer = [file_entry(name, base.folder / name) for name in present]
    return TarStream([bytes_entry("config.json", config), *tokenizer, weights])


def export_peft(checkpoint: Checkpoint, base: BaseModel) -> TarStream:
    """As `export_hf`: `adapter_config.json` and `adapter_model.safetensors`, as PEFT reads them.

    @raises WorkerError bad_input for a checkpoint of all weights"""
    if checkpoint.lora is None:
        raise bad_input("this checkpoint holds all weights: ask for hf", "format")
    name = "adapter_model.safetensors"
    with safe_open(checkpoint.folder / name, "pt") as tensors:
        config = peft_config(checkpoint.lora, tensors.keys(), base.name)
    text = json.dumps(config, indent=1).encode()
    return TarStream([bytes_entry("adapter_config.json", text), file_entry(name, checkpoint.folder / name)])
