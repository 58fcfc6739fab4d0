"""Training rows of log-normal lengths, the same from one seed wherever they are made."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

# Bytes only: `transformers` gives the padding token's embedding no gradient, and that token has a meaning in our rows.
VOCABULARY = 256
MEDIAN, SIGMA, SHORTEST = 200, 1.0, 8


@dataclass(frozen=True)
class Row:
    """`tokens` begin with `prompt` tokens that are not trained; logprobs and advantage are those of the others."""

    tokens: np.ndarray
    prompt: int
    logprobs: np.ndarray
    advantage: float

    @property
    def trained(self) -> int:
        return len(self.tokens) - self.prompt


def make_rows(seed: int, count: int, cap: int, vocabulary: int) -> list[Row]:
    """@param cap: longest row, tokens"""
    rng = np.random.default_rng(seed)
    lengths = np.exp(rng.normal(np.log(MEDIAN), SIGMA, count)).round().clip(SHORTEST, cap).astype(int)

    def row(length: int) -> Row:
        prompt = max(2, length // 4)
        logprobs = (-5.5 + 0.1 * rng.normal(size=length - prompt)).astype(np.float32)
        return Row(rng.integers(0, vocabulary, length), prompt, logprobs, float(rng.normal()))

    return [row(int(length)) for length in lengths]


def in_batches(rows: list[Row], size: int, by_length: bool) -> list[list[Row]]:
    """@param by_length: rows of similar lengths together, else in the order they came"""
    ordered = sorted(rows, key=lambda row: -len(row.tokens)) if by_length else rows
    return [ordered[start : start + size] for start in range(0, len(ordered), size)]
