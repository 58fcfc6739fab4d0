"""Random weights for a folder of config and tokenizer: `random_qwen3.py <from> <to> <seed>`."""
import shutil
import sys
from pathlib import Path

import torch
from transformers import AutoConfig, AutoModelForCausalLM

source, target, seed = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
torch.manual_seed(seed)
torch.set_num_threads(1)
target.mkdir(parents=True, exist_ok=True)
for file in source.iterdir():
    shutil.copy(file, target / file.name)
# Its own config.json comes with the weights.
AutoModelForCausalLM.from_config(AutoConfig.from_pretrained(source), dtype=torch.float32).save_pretrained(target)
