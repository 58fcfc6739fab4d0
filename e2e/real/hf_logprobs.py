"""Log-probabilities of token sequences under a Hugging Face folder, computed by `transformers` alone.

usage: hf_logprobs.py FOLDER < {"sequences": [[ids], …]} > [[logprob of each id after the first], …]
"""

import json
import sys

import torch
from transformers import AutoModelForCausalLM

model = AutoModelForCausalLM.from_pretrained(sys.argv[1], dtype=torch.float32, attn_implementation="eager").eval()
found = []
with torch.no_grad():
    for ids in json.load(sys.stdin)["sequences"]:
        tokens = torch.tensor([ids])
        scores = torch.log_softmax(model(tokens).logits[0, :-1].double(), dim=-1)
        found.append(scores.gather(1, tokens[0, 1:, None])[:, 0].tolist())
json.dump(found, sys.stdout)
