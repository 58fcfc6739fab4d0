"""Checkpoints on disk: `<root>/<model>/<kind>/<name>/` with safetensors and JSON only.

Order of writing: hidden temporary folder → files → fsync → rename → COMPLETE with every file's sha256. Readers ignore
a folder without COMPLETE, so a crash at any moment leaves either the whole checkpoint or none. A name is used once:
saving the same content again succeeds, other content is a conflict."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import secrets
import shutil
import time
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import torch
from safetensors.torch import load_file, save

from .adamw import AdamW
from .durable import fsync_folder, write_durably, write_synced
from .errors import WorkerError, bad_input
from .lora import LoraSpec
from .policy_weights import PolicyWeights

KINDS = ("weights", "sampler_weights")
_NAME = re.compile(r"^[A-Za-z0-9_-]{1,255}$")
_TEMPORARY = ".tmp-"


@dataclass(frozen=True)
class CheckpointId:
    model_id: str
    kind: str
    name: str

    @property
    def path(self) -> str:
        return f"tinker://{self.model_id}/{self.kind}/{self.name}"


def check_name(name: object, field: str) -> str:
    if not isinstance(name, str) or not _NAME.match(name):
        raise bad_input("must match ^[A-Za-z0-9_-]{1,255}$", field)
    return name


def parse_path(path: object, field: str = "path") -> CheckpointId:
    """`tinker://<model>/<weights|sampler_weights>/<name>`; the scheme may be left out. @raises WorkerError bad_input"""
    parts = path.removeprefix("tinker://").split("/") if isinstance(path, str) else []
    if len(parts) != 3 or parts[1] not in KINDS:
        raise bad_input("must be tinker://<model>/<weights or sampler_weights>/<name>", field)
    return CheckpointId(check_name(parts[0], field), parts[1], check_name(parts[2], field))


@dataclass(frozen=True)
class Checkpoint:
    """A COMPLETE checkpoint as found on disk."""

    id: CheckpointId
    folder: Path
    state: dict
    manifest: dict

    @property
    def lora(self) -> LoraSpec | None:
        """What was adapted; None for a checkpoint of all weights."""
        return LoraSpec(**self.state["lora"]) if self.state.get("lora") else None

    @property
    def bytes(self) -> int:
        return sum(file["bytes"] for file in self.manifest["files"].values())


def _digest_of(file: BinaryIO) -> str:
    digest = hashlib.sha256()
    while part := file.read(1 << 20):
        digest.update(part)
    return digest.hexdigest()


def _folder_in(root: Path, id: CheckpointId) -> Path:
    return root / id.model_id / id.kind / id.name


def _unknown(id: CheckpointId) -> WorkerError:
    return WorkerError("unknown_model", f"no complete checkpoint {id.path}", "path")


class CheckpointStore:
    """@param owned: this process alone writes here; else what it finds may be in the making by another one
    @param others: stores of other workers: what is not here is read there, and nothing there is changed"""

    def __init__(self, root: Path, owned: bool = True, others: list[Path] | None = None):
        self._root = root
        self._others = others or []
        root.mkdir(parents=True, exist_ok=True)
        if not owned:
            return
        # Left by a crash: never visible to readers.
        for leftover in root.glob(f"*/*/{_TEMPORARY}*"):
            shutil.rmtree(leftover, ignore_errors=True)

    def folder(self, id: CheckpointId) -> Path:
        return _folder_in(self._root, id)

    def save(
        self,
        id: CheckpointId,
        weights: PolicyWeights,
        optimiser: AdamW | None,
        state: dict,
        overwrite: bool = False,
    ) -> Checkpoint:
        """Writes a checkpoint. @raises WorkerError conflict when the name holds other content and `overwrite` is not set."""
        files = {weights.stored_file: save(weights.to_stored(), {"format": "pt"})}
        if optimiser is not None:
            moments = {"mean": optimiser.mean, "square": optimiser.square}
            tensors = {name: tensor.detach().cpu().clone() for name, tensor in moments.items()}
            files["optimizer.safetensors"] = save({**tensors, "rng": torch.get_rng_state()})
        digest = hashlib.sha256(repr((state["base_model"], state["step"])).encode())
        for content in files.values():
            digest.update(hashlib.sha256(content).digest())
        existing = self.find(id)
        if existing is not None and not overwrite:
            if existing.manifest["content_sha256"] == digest.hexdigest():
                return existing
            raise WorkerError("conflict", f"checkpoint {id.path} exists with other content", "path")
        state = {**state, "updates": optimiser.updates if optimiser else 0, "created_at": time.time()}
        files["state.json"] = json.dumps(state).encode()
        return self._publish(id, files, digest.hexdigest(), state)

    def _publish(self, id: CheckpointId, files: dict[str, bytes], digest: str, state: dict) -> Checkpoint:
        final = self.folder(id)
        temporary = final.parent / f"{_TEMPORARY}{id.name[:200]}-{secrets.token_hex(4)}"
        try:
            temporary.mkdir(parents=True)
            for name, content in files.items():
                write_synced(temporary / name, content)
            fsync_folder(temporary)
        except OSError as error:
            shutil.rmtree(temporary, ignore_errors=True)
            if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                raise
            needed = sum(map(len, files.values()))
            detail = f"no room for checkpoint {id.path}: {needed} bytes are needed below {self._root}; free some"
            raise WorkerError("no_space", detail) from error
        if final.exists():
            # Torn by a crash between rename and COMPLETE; or to be overwritten, and then gone for readers first.
            (final / "COMPLETE").unlink(missing_ok=True)
            shutil.rmtree(final)
        os.rename(temporary, final)
        fsync_folder(final.parent)
        entries = {n: {"sha256": hashlib.sha256(c).hexdigest(), "bytes": len(c)} for n, c in files.items()}
        manifest = {"files": entries, "content_sha256": digest}
        write_durably(final / "COMPLETE", json.dumps(manifest).encode())
        return Checkpoint(id, final, state, manifest)

    def find(self, id: CheckpointId) -> Checkpoint | None:
        """The checkpoint of this store, or None when there is no complete one that has not expired."""
        return self._found_in(self._root, id)

    def _found_in(self, root: Path, id: CheckpointId) -> Checkpoint | None:
        folder = _folder_in(root, id)
        try:
            manifest = json.loads((folder / "COMPLETE").read_text())
            state = json.loads((folder / "state.json").read_text())
        except (OSError, ValueError):
            return None
        if state.get("expires_at") is not None and state["expires_at"] <= time.time():
            return None
        return Checkpoint(id, folder, state, manifest)

    def remove_expired(self) -> None:
        """Frees what expired checkpoints hold; readers do not see them any more."""
        for file in self._root.glob("*/*/*/COMPLETE"):
            folder = file.parent
            id = CheckpointId(folder.parent.parent.name, folder.parent.name, folder.name)
            if _NAME.match(folder.name) and self.find(id) is None:
                file.unlink(missing_ok=True)
                shutil.rmtree(folder, ignore_errors=True)

    def get(self, id: CheckpointId) -> Checkpoint:
        """To be read: this store's own, else another worker's."""
        for root in [self._root, *self._others]:
            checkpoint = self._found_in(root, id)
            if checkpoint is not None:
                return checkpoint
        raise _unknown(id)

    def verified(self, id: CheckpointId) -> Checkpoint:
        """As `get`, after checking every file's sha256. @raises WorkerError conflict for a damaged one."""
        checkpoint = self.get(id)
        for name, expected in checkpoint.manifest["files"].items():
            with open(checkpoint.folder / name, "rb") as file:
                actual = _digest_of(file)
            if actual != expected["sha256"]:
                raise WorkerError("conflict", f"checkpoint {id.path} is damaged: {name}", "path")
        return checkpoint

    def load(self, id: CheckpointId, weights: PolicyWeights, optimiser: AdamW | None) -> dict:
        """Copies a checkpoint in and returns its state; without `optimiser` only the weights are read.

        @raises WorkerError bad_input when the optimiser is wanted and was not saved."""
        checkpoint = self.verified(id)
        if optimiser is not None and "optimizer.safetensors" not in checkpoint.manifest["files"]:
            raise bad_input("this checkpoint holds no optimizer state", "optimizer")
        if weights.stored_file not in checkpoint.manifest["files"]:
            held = "all weights" if checkpoint.lora is None else "an adapter"
            raise bad_input(f"{id.path} holds {held}, which is not what is trained here", "path")
        weights.load_stored(load_file(checkpoint.folder / weights.stored_file))
        if optimiser is not None:
            moments = load_file(checkpoint.folder / "optimizer.safetensors")
            optimiser.mean.copy_(moments["mean"])
            optimiser.square.copy_(moments["square"])
            optimiser.updates = checkpoint.state["updates"]
            torch.set_rng_state(moments["rng"])
        return checkpoint.state

    def delete(self, id: CheckpointId) -> None:
        """Removes a checkpoint; it vanishes for readers first."""
        checkpoint = self.find(id)
        if checkpoint is None:
            raise _unknown(id)
        folder = checkpoint.folder
        (folder / "COMPLETE").unlink()
        shutil.rmtree(folder)

    def of_model(self, model_id: str) -> list[Checkpoint]:
        """Complete checkpoints of a model, oldest first."""
        found = []
        for kind in KINDS:
            for folder in (self._root / model_id / kind).glob("*"):
                if _NAME.match(folder.name):
                    checkpoint = self.find(CheckpointId(model_id, kind, folder.name))
                    if checkpoint is not None:
                        found.append(checkpoint)
        return sorted(found, key=lambda c: c.state["created_at"])

    def model_ids(self) -> list[str]:
        """Models that have a folder, alive or not."""
        return sorted(folder.name for folder in self._root.iterdir() if _NAME.match(folder.name))
