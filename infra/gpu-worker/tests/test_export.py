"""Exports: a tar that is never whole in memory or on disk, and the merged weights in it."""

from __future__ import annotations

import errno
import hashlib
import http.client
import io
import json
import os
import struct
import tarfile
from pathlib import Path

import pytest
import torch
from safetensors.torch import load, save_file
from tiny_model import CPU, tiny_trainer
from worker_process import QUICKSTART, TINY, WorkerProcess

from rolldeck_gpu_worker import checkpoints
from rolldeck_gpu_worker.base_models import BaseModel, BaseModels
from rolldeck_gpu_worker.checkpoints import Checkpoint, CheckpointId, CheckpointStore
from rolldeck_gpu_worker.errors import WorkerError
from rolldeck_gpu_worker.hf_export import export_hf, export_peft
from rolldeck_gpu_worker.lora import LoraAdapter, LoraSpec
from rolldeck_gpu_worker.tar_stream import TarStream, bytes_entry, file_entry
from rolldeck_gpu_worker.weights import lora_modules

ONE = CheckpointId("m", "weights", "one")
BIG = 192 << 20


def tar_of(stream: TarStream) -> dict[str, bytes]:
    whole = b"".join(stream.parts())
    assert len(whole) == stream.length
    with tarfile.open(fileobj=io.BytesIO(whole)) as tar:
        return {entry.name: tar.extractfile(entry).read() for entry in tar}


def base_folder(folder: Path, tensors: dict[str, torch.Tensor] | None = None, **changes) -> BaseModel:
    folder.mkdir()
    config = json.loads((QUICKSTART / "config.json").read_text()) | TINY | changes
    (folder / "config.json").write_text(json.dumps(config))
    if tensors is not None:
        save_file(tensors, folder / "model.safetensors")
    return BaseModels([folder.parent]).get(folder.name)


def adapted(folder: Path, base: BaseModel, spec: LoraSpec) -> Checkpoint:
    """A stored adapter that changes every module it has."""
    adapter = LoraAdapter(spec, lora_modules(base.config, spec), CPU, with_grad=False)
    adapter.initialise(3)
    generator = torch.Generator().manual_seed(4)
    for low_rank in adapter.low_ranks.values():
        low_rank.b.copy_(torch.randn(low_rank.b.shape, generator=generator) * 0.05)
    folder.mkdir()
    save_file(adapter.to_peft(), folder / "adapter_model.safetensors")
    return Checkpoint(ONE, folder, {"lora": spec.as_state()}, {})


def anonymous_bytes() -> int:
    """Memory of this process that no file backs."""
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("RssAnon"))
    return int(line.split()[1]) * 1024


def growth_of(stream: TarStream) -> int:
    """How far memory rose while a tar was made, in bytes."""
    before = most = anonymous_bytes()
    seen = 0
    for part in stream.parts():
        seen += len(part)
        most = max(most, anonymous_bytes())
    assert seen == stream.length
    return most - before


def test_a_tar_is_what_tarfile_reads_and_comes_again_the_same(tmp_path):
    (tmp_path / "b").write_bytes(b"x" * 70_000)
    long = "n" * 120
    stream = TarStream([bytes_entry("a", b"one"), file_entry("b", tmp_path / "b"), bytes_entry(long, b"")])
    assert tar_of(stream) == {"a": b"one", "b": b"x" * 70_000, long: b""}
    digest = hashlib.sha256()
    assert sum(stream.hashed(digest)) == stream.length
    assert digest.hexdigest() == hashlib.sha256(b"".join(stream.parts())).hexdigest()


def test_a_file_that_changed_is_not_passed_off_as_whole(tmp_path):
    (tmp_path / "b").write_bytes(b"x" * 70_000)
    stream = TarStream([file_entry("b", tmp_path / "b")])
    (tmp_path / "b").write_bytes(b"x" * 60_000)
    with pytest.raises(WorkerError, match="b changed while it was exported"):
        list(stream.parts())


@pytest.mark.parametrize("tied", [True, False], ids=["tied", "untied"])
@pytest.mark.parametrize("stored", [True, False], ids=["with weights", "without weights"])
@pytest.mark.parametrize("parts", [{}, {"train_unembed": False}, {"train_attn": False}], ids=str)
def test_rows_merge_to_what_the_sampler_serves(tmp_path, tied, stored, parts):
    bare = base_folder(tmp_path / "bare", tie_word_embeddings=tied)
    tensors = bare.frozen(CPU).to_hf()
    base = base_folder(tmp_path / "stored", tensors, tie_word_embeddings=tied) if stored else bare
    checkpoint = adapted(tmp_path / "adapter", base, LoraSpec(3, **parts))
    files = tar_of(export_hf(checkpoint, base))
    served = base.make_adapted(checkpoint.lora, 0, CPU, with_grad=False)
    served.load_stored(load(tar_of(export_peft(checkpoint, base))["adapter_model.safetensors"]))
    expected, given = served.snapshot().to_hf(), load(files["model.safetensors"])
    assert sorted(given) == sorted(expected)
    for name, tensor in expected.items():
        torch.testing.assert_close(given[name], tensor, rtol=0, atol=1e-6)
    untied = tied and parts.get("train_unembed", True)
    assert json.loads(files["config.json"])["tie_word_embeddings"] is (tied and not untied)


def test_the_weights_of_a_checkpoint_are_passed_on_in_parts(tmp_path):
    base = base_folder(tmp_path / "base")
    with open(tmp_path / "model.safetensors", "wb") as file:
        file.truncate(BIG)
    assert growth_of(export_hf(Checkpoint(ONE, tmp_path, {"lora": None}, {}), base)) < 16 << 20


def test_merging_holds_a_few_rows(tmp_path):
    """The embedding alone is far larger than what may be held."""
    base = base_folder(tmp_path / "base", vocab_size=BIG // (4 * 256), hidden_size=256)
    header, offset = {}, 0
    for name, view in meta_shapes(base).items():
        size = 4 * view.numel()
        header[name] = {"dtype": "F32", "shape": list(view.shape), "data_offsets": [offset, offset + size]}
        offset += size
    text = json.dumps(header).encode()
    with open(base.folder / "model.safetensors", "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        file.truncate(8 + len(text) + offset)
    checkpoint = adapted(tmp_path / "adapter", base, LoraSpec(2))
    assert growth_of(export_hf(checkpoint, base)) < 48 << 20


def meta_shapes(base: BaseModel) -> dict[str, torch.Tensor]:
    from rolldeck_gpu_worker.weights import Weights

    return Weights(base.config, torch.empty(base.parameters, device="meta")).hf_views()


def test_an_export_that_is_broken_off_leaves_nothing(tmp_path, model_root, monkeypatch):
    """No byte of an export goes to the disk, neither beside the checkpoint nor in the temporary folder."""
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    with WorkerProcess(tmp_path / "data", model_root) as worker:
        with worker.client() as client:
            model = client.model(rank=4)
            model.call("save_weights", path="one")
            before = sorted(str(path) for path in (tmp_path / "data").rglob("*"))
            where = f"/ext/v1/checkpoints/{model.id}/weights/one/export?format="
        for form in ("hf", "peft"):
            with worker.client() as client:
                client.connection.request("GET", where + form, headers=client.headers)
                answer = client.connection.getresponse()
                assert answer.status == 200 and answer.read(1000)
        with worker.client() as client:
            whole = client.send("GET", where + "hf")
            assert hashlib.sha256(whole.body).hexdigest() == whole.headers["x-content-sha256"]
        assert sorted(str(path) for path in (tmp_path / "data").rglob("*")) == before
    assert list(temporary.iterdir()) == []


CUT = """
from rolldeck_gpu_worker.tar_stream import TarStream
whole = TarStream.parts
def cut(self):
    for index, part in enumerate(whole(self)):
        if index == 5 and self.asked: raise OSError("the disk is gone")
        yield part
    self.asked = True
TarStream.asked = False
TarStream.parts = cut
"""


def test_a_stream_that_fails_cuts_the_connection(tmp_path, model_root):
    with WorkerProcess(tmp_path, model_root, prelude=CUT) as worker, worker.client() as client:
        model = client.model()
        model.call("save_weights", path="one")
        client.connection.request(
            "GET", f"/ext/v1/checkpoints/{model.id}/weights/one/export", headers=client.headers
        )
        answer = client.connection.getresponse()
        with pytest.raises((ConnectionError, http.client.IncompleteRead)):
            answer.read()


def test_a_full_disk_is_named_and_leaves_nothing(tmp_path, monkeypatch):
    def full(path: Path, content: bytes) -> None:
        # What the disk itself says when it is full.
        with open("/dev/full", "wb", buffering=0) as file:
            file.write(content)

    store, trainer = CheckpointStore(tmp_path), tiny_trainer()
    state = {"base_model": "tiny", "step": 0, "seed": 0, "model_id": "m"}
    monkeypatch.setattr(checkpoints, "write_synced", full)
    with pytest.raises(WorkerError, match="no room for checkpoint tinker://m/weights/one") as caught:
        store.save(ONE, trainer.weights, trainer.optimiser, state)
    assert caught.value.code == "no_space"
    assert caught.value.__cause__.errno == errno.ENOSPC
    assert os.listdir(tmp_path / "m" / "weights") == []
    monkeypatch.undo()
    store.save(ONE, trainer.weights, trainer.optimiser, state)
    assert store.find(ONE) is not None
