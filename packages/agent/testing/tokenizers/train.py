"""Trains the two small tokenizers that tests use, each with a chat template of its own. Run it by hand; the files are committed.

    python packages/agent/testing/tokenizers/train.py

Both are made to be awkward: the byte-level BPE has ordinary added tokens and a normaliser, the unigram puts a space before the
first word of a text, knows its special tokens as words too, and falls back to bytes.
"""

from __future__ import annotations

import json
from pathlib import Path

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

HERE = Path(__file__).resolve().parent
CORPUS = [
    "The agent looks a key up, reads the answer and calls the next tool.",
    "def add(a, b):\n    return a + b\n\nprint(add(1, 2))\n",
    '{"name": "get", "arguments": {"key": "a", "count": 3, "deep": {"list": [1, 2, null, true]}}}',
    "hello hello he llo yellow fellow, said the user to the assistant.",
    "El niño comió piñas. Größe, naïve, œuvre, Ωmega, привет мир, こんにちは世界, 你好，世界。 😀🚀👩‍👩‍👧",
    "tabs\tand  double  spaces,\r\nwindows lines\n\n\nand blank ones.",
    "system user assistant tool think tool_call tool_response function parameter arguments",
] * 20


def byte_bpe() -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.NFC()
    split = Regex(r"'s|'t| ?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+")
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Split(split, "isolated"), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=700, initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()), show_progress=False)
    tokenizer.train_from_iterator(CORPUS, trainer)
    tokenizer.add_special_tokens([AddedToken(name, special=True) for name in ("<|start|>", "<|end|>", "<|pad|>")])
    tokenizer.add_tokens([AddedToken(name, normalized=False) for name in ("<call>", "</call>", "<think>", "</think>")])
    return tokenizer


def unigram() -> Tokenizer:
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first", split=True)
    tokenizer.decoder = decoders.Sequence([decoders.ByteFallback(), decoders.Metaspace(prepend_scheme="first")])
    special = ["<unk>", "<s>", "</s>", "[USER]", "[AGENT]", "[RESULT]"]
    byte_tokens = [f"<0x{byte:02X}>" for byte in range(256)]
    trainer = trainers.UnigramTrainer(vocab_size=900, special_tokens=special + byte_tokens, unk_token="<unk>", show_progress=False)
    tokenizer.train_from_iterator(CORPUS, trainer)
    written = json.loads(tokenizer.to_str())
    # The trainer marks bytes as special tokens; they are words that only the fallback may use.
    written["added_tokens"] = [token for token in written["added_tokens"] if token["content"] in special]
    written["model"]["byte_fallback"] = True
    return Tokenizer.from_str(json.dumps(written))


def save(name: str, tokenizer: Tokenizer, config: dict[str, object], template: str) -> None:
    folder = HERE / name
    folder.mkdir(exist_ok=True)
    text = json.dumps(json.loads(tokenizer.to_str()), ensure_ascii=False, indent=None, separators=(",", ":"))
    (folder / "tokenizer.json").write_text(text + "\n", encoding="utf-8")
    config = {"tokenizer_class": "PreTrainedTokenizerFast", "clean_up_tokenization_spaces": False, **config}
    (folder / "tokenizer_config.json").write_text(json.dumps(config, indent=1) + "\n", encoding="utf-8")
    (folder / "chat_template.jinja").write_text(template, encoding="utf-8")


CALLS = "{%- for call in message.tool_calls or [] -%}<call>{{ call.function | tojson }}</call>{%- endfor -%}"
CHATML = (
    "{%- if tools -%}<|start|>system\n{{ '\n' }}{{ tools | tojson(indent=1) }}<|end|>{{ '\n' }}{%- endif -%}"
    "{%- for message in messages -%}{{- '<|start|>' ~ message.role ~ '\n' -}}"
    "{%- if message.reasoning_content -%}<think>{{ message.reasoning_content }}</think>{%- endif -%}"
    "{{- message.content -}}" + CALLS + "{{- '<|end|>\n' -}}{%- endfor -%}"
    "{%- if add_generation_prompt -%}{{- '<|start|>assistant\n' -}}{%- endif -%}"
)
# Spaces around content, the end token only after the agent: a plain role mark closes every other turn.
SPACED = (
    "{{- bos_token -}}{%- for message in messages -%}"
    "{%- if message.role == 'assistant' -%}{{- '[AGENT] ' + message.content -}}" + CALLS + "{{- eos_token -}}"
    "{%- elif message.role == 'tool' -%}{{- '[RESULT] ' + message.content -}}"
    "{%- else -%}{{- '[USER] ' + message.content -}}{%- endif -%}{%- endfor -%}"
    "{%- if add_generation_prompt -%}{{- '[AGENT]' -}}{%- endif -%}"
)

if __name__ == "__main__":
    save("byte-bpe", byte_bpe(), {"eos_token": "<|end|>", "pad_token": "<|pad|>"}, CHATML)
    save("unigram", unigram(), {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}, SPACED)
