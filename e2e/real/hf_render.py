"""Token ids of conversations and texts, made by `transformers` alone.

usage: hf_render.py < {"cases": [{folder, template, messages, tools, variables}], "texts": {folder: [text, …]}}
       > {"cases": [[id, …] or null where the template raises, …], "texts": {folder: [[id, …], …]}}

A text is encoded behind a special token, as content stands in a prompt.
"""

import json
import sys

import jinja2
from transformers import PreTrainedTokenizerFast

request = json.load(sys.stdin)
loaded = {}


def tokenizer_of(folder):
    if folder not in loaded:
        with open(f"{folder}/tokenizer_config.json") as file:
            config = json.load(file)
        names = {name: text(config.get(name)) for name in ("bos_token", "eos_token", "pad_token", "unk_token") if config.get(name)}
        loaded[folder] = PreTrainedTokenizerFast(tokenizer_file=f"{folder}/tokenizer.json", **names)
    return loaded[folder]


def text(token):
    return token["content"] if isinstance(token, dict) else token


def render(case):
    try:
        return tokenizer_of(case["folder"]).apply_chat_template(
            case["messages"], tools=case["tools"], chat_template=case["template"], tokenize=True, return_dict=False, **case["variables"]
        )
    except jinja2.exceptions.TemplateError:
        return None


def encode(folder, texts):
    tokenizer = tokenizer_of(folder)
    before = tokenizer.eos_token
    return [tokenizer.encode(before + text, add_special_tokens=False)[1:] for text in texts]


json.dump(
    {
        "cases": [render(case) for case in request["cases"]],
        "texts": {folder: encode(folder, texts) for folder, texts in request["texts"].items()},
    },
    sys.stdout,
)
