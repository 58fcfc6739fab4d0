"""The GPU worker, unchanged but for traps: it ends itself, as kill -9 does, in the midst of what a file names.

    MORTAL_FILE=<file> python mortal_worker.py <the worker's arguments>

While the file is missing nothing happens, so that a worker can be armed at any moment.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path

import torch
from rolldeck_gpu_worker import checkpoints
from rolldeck_gpu_worker.__main__ import main
from rolldeck_gpu_worker.batch import SampleBatch
from rolldeck_gpu_worker.trainer import Trainer
from rolldeck_gpu_worker.weights import Weights

ARMED = Path(os.environ["MORTAL_FILE"])


def trap(owner: object, name: str, point: str, nth: int = 1, after: bool = False) -> None:
    """Dies at the `nth` call of `owner.name` since the file named `point`; `after` its work, where that is asked."""
    real = getattr(owner, name)
    left = nth

    def mortal(*args, **kwargs):
        nonlocal left
        dies = False
        if ARMED.exists() and ARMED.read_text() == point:
            left -= 1
            dies = left == 0
        if dies and not after:
            os.kill(os.getpid(), signal.SIGKILL)
        result = real(*args, **kwargs)
        if dies:
            os.kill(os.getpid(), signal.SIGKILL)
        return result

    setattr(owner, name, mortal)


# Some tokens of every rollout are drawn.
trap(SampleBatch, "step", "sampling", nth=12)
# One micro-batch's gradient is there.
trap(Trainer, "_micro_batch", "forward_backward", nth=2)
# The moments are new, the weights are not.
trap(torch.Tensor, "addcdiv_", "optim_step")
# The folder has its name, and no COMPLETE.
trap(checkpoints, "write_durably", "checkpoint write")
# The copy is made, and serves nobody.
trap(Weights, "snapshot", "sampler save", after=True)

if __name__ == "__main__":
    main()
