"""Command line and environment of the worker, parsed once."""

from __future__ import annotations

import argparse
import os
from dataclasses import dataclass
from pathlib import Path

KEY_VARIABLE = "ROLLDECK_GPU_WORKER_KEY"
VLLM_KEY_VARIABLE = "ROLLDECK_VLLM_KEY"


@dataclass(frozen=True)
class Settings:
    host: str
    port: int
    data_dir: Path
    # Checkpoints in the data folder are another worker's: they are read, and nothing is trained.
    sampler: bool
    also_read: list[Path]
    model_roots: list[Path]
    # Model folders that have a name of their own.
    models: dict[str, Path]
    max_lora_rank: int
    gradient_checkpointing: bool
    api_key: str
    instant_engine: bool
    # Address of a vLLM server that samples; None: the worker does.
    vllm_url: str | None
    vllm_key: str | None
    threads: int
    device: str
    # What the forward pass computes in.
    dtype: str
    # What the optimizer's moments are kept in.
    optimizer_moments: str
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
    parser.add_argument(
        "--sampler", action="store_true", help="only sample, from checkpoints that another worker saves into the data folder"
    )
    parser.add_argument(
        "--also-read",
        action="append",
        default=[],
        type=Path,
        metavar="DIR",
        help="data folder of another worker whose checkpoints are read too, and never changed; may be repeated",
    )
    parser.add_argument("--model-roots", required=True, help="folders of model folders, separated by ':'")
    parser.add_argument(
        "--model",
        action="append",
        default=[],
        metavar="NAME=FOLDER",
        help="serve a model folder under this name, which may look like a path; may be repeated",
    )
    parser.add_argument("--max-lora-rank", type=int, default=1024)
    parser.add_argument(
        "--gradient-checkpointing",
        action="store_true",
        help="keep only each layer's input for the backward pass: less memory for about a third more work",
    )
    parser.add_argument("--instant-engine", action="store_true", help="answer samples without a model (wire benchmark)")
    parser.add_argument(
        "--engine",
        choices=["torch", "vllm"],
        default="torch",
        help="what samples; vllm: EXPERIMENTAL, never run: a vLLM 0.33.0 server on the same GPU",
    )
    parser.add_argument("--vllm-url", help="of the engine vllm: http://127.0.0.1:PORT")
    parser.add_argument("--threads", type=int, default=1, help="torch threads; more were slower for small models")
    parser.add_argument("--device", choices=["auto", "cpu", "cuda"], default="auto")
    parser.add_argument(
        "--dtype",
        choices=["auto", "float32", "bfloat16"],
        default="auto",
        help="of the forward pass; auto: bfloat16 on a GPU that computes in it. Weights under training stay float32",
    )
    parser.add_argument(
        "--optimizer-moments",
        choices=["float32", "bfloat16"],
        default="float32",
        help="bfloat16 takes 4 bytes less for each trained parameter; beta1 and beta2 are then at most 0.99",
    )
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
    models = dict(_named_folder(parser, text) for text in args.model)
    if args.max_lora_rank < 1:
        parser.error("--max-lora-rank must be at least 1")
    if args.threads < 1 or args.max_rows < 1 or args.micro_batch_tokens < 64:
        parser.error("--threads and --max-rows must be at least 1, --micro-batch-tokens at least 64")
    if (args.engine == "vllm") != (args.vllm_url is not None):
        parser.error("--engine vllm and --vllm-url belong together")
    return Settings(
        host=args.host,
        port=args.port,
        data_dir=args.data_dir,
        sampler=args.sampler,
        also_read=args.also_read,
        model_roots=[Path(root) for root in args.model_roots.split(":") if root],
        models=models,
        max_lora_rank=args.max_lora_rank,
        gradient_checkpointing=args.gradient_checkpointing,
        api_key=key,
        instant_engine=args.instant_engine,
        vllm_url=args.vllm_url,
        vllm_key=environment.get(VLLM_KEY_VARIABLE),
        threads=args.threads,
        device=args.device,
        dtype=args.dtype,
        optimizer_moments=args.optimizer_moments,
        max_rows=args.max_rows,
        max_waiting=args.max_waiting,
        micro_batch_tokens=args.micro_batch_tokens,
        prefix_cache_bytes=args.prefix_cache_mb << 20,
        session_lease_s=args.session_lease_s,
        gap_wait_s=args.gap_wait_s,
    )


def _named_folder(parser: argparse.ArgumentParser, text: str) -> tuple[str, Path]:
    name, equals, folder = text.rpartition("=")
    if not equals or not name or not (Path(folder) / "config.json").is_file():
        parser.error(f"--model {text}: NAME=FOLDER is needed, and the folder must hold a config.json")
    return name, Path(folder).resolve()
