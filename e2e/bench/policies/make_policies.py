"""Makes the policies that benchmarks run, as Hugging Face folders with seeded weights: the quickstart policy's shape
and one of about 5M parameters, both with room for rows of 4,096 tokens. Prints [{name, folder, params}].

    python make_policies.py FOLDER
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import torch
from rolldeck_gpu_worker.model_config import parse_model_config
from rolldeck_gpu_worker.weights import Weights, parameter_count, seeded_flat
from safetensors.torch import save_file

QUICKSTART = Path(__file__).resolve().parents[3] / "infra" / "models" / "quickstart"
SEED = 6
LONG = {"max_position_embeddings": 4096}
WIDE = {"hidden_size": 256, "intermediate_size": 704, "num_hidden_layers": 6, "max_window_layers": 6}
WIDE |= {"num_attention_heads": 8, "num_key_value_heads": 8}
POLICIES = {"quickstart": LONG, "5m": LONG | WIDE}


def make(folder: Path, changes: dict) -> int:
    """Writes one policy; returns its number of parameters."""
    shutil.copytree(QUICKSTART, folder)
    raw = json.loads((folder / "config.json").read_text()) | changes
    (folder / "config.json").write_text(json.dumps(raw, indent=1))
    config = parse_model_config(raw)
    weights = Weights(config, seeded_flat(config, SEED, torch.device("cpu")))
    save_file(weights.to_hf(), folder / "model.safetensors", {"format": "pt"})
    return parameter_count(config)


if __name__ == "__main__":
    root = Path(sys.argv[1])
    made = [{"name": n, "folder": str(root / n), "params": make(root / n, c)} for n, c in POLICIES.items()]
    print(json.dumps(made))
