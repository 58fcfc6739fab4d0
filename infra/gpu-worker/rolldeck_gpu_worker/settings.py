"""Command line and environment of the worker, parsed once."""

from __future__ import annotations

import argparse
import os
from dataclasses import dataclass
from pathlib import Path

KEY_VARIABLE = "ROLLDECK_GPU_WORKER_KEY"


@dataclass(frozen=True)
class Settings:
    host: str
    port: int
    data_dir: Path
    model_roots: list[Path]
    api_key: str
    instant_engine: bool
    threads: int
    device: str
    max_rows: int
    max_waiting: int
    micro_batch_tokens: int
    prefix_cache_bytes: int
    session_lease_s: float
    gap_wait_s: float


def parse_settings(argv: list[str], environment: dict[str, str] | None = None) -> Settings:
    """Exits with a message when something is missing or wrong."""
    environment = dict(os.environ) if environment is None else environment
    parser = argparse.ArgumentParser(prog="rolldeck_gpu_worker", description=__doc__)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0, help="0 picks a free one")
    parser.add_argument("--data-dir", type=Path, required=True, help="checkpoints live here")
    parser.add_argument("--model-roots", required=True, help="folders of model folders, separated by ':'")
    parser.add_argument("--instant-engine", action="store_true", help="answer samples without a model (wire benchmark)")
    parser.add_argument("--threads", type=int, default=1, help="torch threads; more were slower for small models")
    parser.add_argument("--device", choices=["auto", "cpu", "cuda"], default="auto")
    parser.add_argument("--max-rows", type=int, default=256, help="sequences sampled at once")
    parser.add_argument("--max-waiting", type=int, default=8192, help="samples in progress before 429")
    parser.add_argument("--micro-batch-tokens", type=int, default=2048)
    parser.add_argument("--prefix-cache-mb", type=int, default=256)
    parser.add_argument("--session-lease-s", type=float, default=300.0, help="silence before a session is unloaded")
    parser.add_argument("--gap-wait-s", type=float, default=5.0, help="wait for missing seq_ids before 409")
    args = parser.parse_args(argv)
    key = environment.get(KEY_VARIABLE, "")
    if not key.startswith("tml-") or len(key) < 12:
        parser.error(f"set {KEY_VARIABLE} to a secret that starts with 'tml-' (at least 12 characters)")
    if args.threads < 1 or args.max_rows < 1 or args.micro_batch_tokens < 64:
        parser.error("--threads and --max-rows must be at least 1, --micro-batch-tokens at least 64")
    return Settings(
        host=args.host,
        port=args.port,
        data_dir=args.data_dir,
        model_roots=[Path(root) for root in args.model_roots.split(":") if root],
        api_key=key,
        instant_engine=args.instant_engine,
        threads=args.threads,
        device=args.device,
        max_rows=args.max_rows,
        max_waiting=args.max_waiting,
        micro_batch_tokens=args.micro_batch_tokens,
        prefix_cache_bytes=args.prefix_cache_mb << 20,
        session_lease_s=args.session_lease_s,
        gap_wait_s=args.gap_wait_s,
    )
