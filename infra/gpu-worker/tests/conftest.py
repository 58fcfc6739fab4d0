"""Fixtures: real worker processes on free loopback ports, and small models in memory."""

from __future__ import annotations

import os
import sys
from pathlib import Path

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(Path(__file__).parent)]

import pytest  # noqa: E402
import torch  # noqa: E402
from worker_process import WorkerProcess, make_model_root  # noqa: E402

torch.set_num_threads(1)


@pytest.fixture(scope="session")
def model_root(tmp_path_factory) -> Path:
    return make_model_root(tmp_path_factory.mktemp("models"))


@pytest.fixture(scope="module")
def worker(tmp_path_factory, model_root):
    """One worker process shared by a module's tests."""
    with WorkerProcess(tmp_path_factory.mktemp("data"), model_root) as process:
        yield process


@pytest.fixture
def client(worker):
    with worker.client() as client:
        yield client
