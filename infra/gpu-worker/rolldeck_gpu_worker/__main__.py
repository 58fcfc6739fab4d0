"""`python -m rolldeck_gpu_worker`: prints one JSON line {"url", "boot_id"} when it is ready."""

from __future__ import annotations

import os
import sys


def main() -> None:
    # Read first: a supervisor that dies while torch loads must not go unnoticed.
    parent = os.getppid()
    # Before torch starts its thread pool: idle threads must not spin on a shared machine.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    from .settings import parse_settings

    settings = parse_settings(sys.argv[1:])
    os.environ.setdefault("OMP_NUM_THREADS", str(settings.threads))

    import asyncio
    import logging

    import torch

    from .app import serve

    torch.set_num_threads(settings.threads)
    # The engine thread and the event loop share the interpreter: short turns keep answers quick.
    sys.setswitchinterval(0.001)
    logging.basicConfig(level=logging.INFO, stream=sys.stderr, format="%(levelname)s %(name)s %(message)s")
    asyncio.run(serve(settings, parent))


if __name__ == "__main__":
    main()
