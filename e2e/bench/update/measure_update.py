"""Seconds of one update of the same rows: packed by the GPU worker, padded by `transformers` in order of length and as
they came.

Reads {folder, seed, rows, cap, batch, gradients} as JSON, prints {trained, packedS, paddedS, unsortedS, gradMaxDiff}.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable

import torch
from packed_update import PackedUpdate
from padded_update import PaddedUpdate
from rows import VOCABULARY, in_batches, make_rows

# Of the gradient's largest entry: below it a difference would say nothing.
LEAST_GRADIENT = 1e-3

torch.set_num_threads(1)


def seconds(work: Callable[[], None]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def largest_difference(ours: dict[str, torch.Tensor], theirs: dict[str, torch.Tensor]) -> float:
    if ours.keys() != theirs.keys():
        raise ValueError(f"parameters differ: {sorted(ours.keys() ^ theirs.keys())[:3]}")
    if max(float(part.abs().max()) for part in ours.values()) < LEAST_GRADIENT:
        raise ValueError("the gradient is too small to be compared")
    return max(float((ours[name] - theirs[name]).abs().max()) for name in ours)


def main() -> None:
    asked = json.load(sys.stdin)
    rows = make_rows(asked["seed"], asked["rows"], asked["cap"], VOCABULARY)
    by_length, unsorted = (in_batches(rows, asked["batch"], by_length) for by_length in (True, False))
    packed, padded = PackedUpdate(asked["folder"]), PaddedUpdate(asked["folder"])
    request = packed.request(rows)
    # What is done once, first: allocations, rotary tables, the optimizers' moments.
    packed.update(packed.request(by_length[-1]))
    padded.update(by_length[-1:])
    gap = None
    if asked["gradients"]:
        gap = largest_difference(packed.gradient(request), padded.gradient(by_length))
    result = {
        "trained": sum(row.trained for row in rows),
        "packedS": seconds(lambda: packed.update(request)),
        "paddedS": seconds(lambda: padded.update(by_length)),
        "unsortedS": seconds(lambda: padded.update(unsorted)),
        "gradMaxDiff": gap,
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
