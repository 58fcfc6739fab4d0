"""Packs sequences of different lengths into micro-batches.

Linear layers see one flat row of tokens without padding; attention sees each sequence on its own (block-diagonal, with
positions counted from 0), in padded groups of similar length, so the result equals the unpacked one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

# A group's longest sequence is at most this many times its shortest: bounds attention padding.
_GROUP_SPREAD = 1.5


def first_fit_decreasing(lengths: Sequence[int], budget: int) -> list[list[int]]:
    """Bins of indices whose lengths sum to at most `budget`; a longer single sequence gets a bin of its own."""
    bins: list[list[int]] = []
    room: list[int] = []
    for index in sorted(range(len(lengths)), key=lambda i: (-lengths[i], i)):
        length = lengths[index]
        for slot, free in enumerate(room):
            if length <= free:
                bins[slot].append(index)
                room[slot] -= length
                break
        else:
            bins.append([index])
            room.append(budget - length)
    return bins


@dataclass
class AttentionGroup:
    """Where a group's padded grid (sequences × longest) takes its tokens from; padding reads token 0 and is dropped."""

    start: int
    end: int
    sequences: int
    longest: int
    # None when all lengths are equal: the flat rows are the grid.
    grid: torch.Tensor | None
    kept: torch.Tensor | None


@dataclass
class PackedBatch:
    tokens: torch.Tensor
    positions: torch.Tensor
    groups: list[AttentionGroup]
    # order[k] = index in the caller's list of the k-th packed sequence; starts has one more entry than order.
    order: list[int]
    starts: list[int]


def pack(sequences: Sequence[np.ndarray], device: torch.device) -> PackedBatch:
    """Packs int64 token arrays, shortest first so that groups are contiguous."""
    order = sorted(range(len(sequences)), key=lambda i: len(sequences[i]))
    lengths = [len(sequences[i]) for i in order]
    starts = [0, *np.cumsum(lengths).tolist()]
    groups = []
    first = 0
    for index in range(1, len(order) + 1):
        if index == len(order) or lengths[index] > _GROUP_SPREAD * lengths[first]:
            groups.append(_group(starts[first], lengths[first:index], device))
            first = index
    tokens = np.concatenate([sequences[i] for i in order])
    positions = np.concatenate([np.arange(length) for length in lengths])
    return PackedBatch(
        tokens=torch.from_numpy(tokens).to(device),
        positions=torch.from_numpy(positions).to(device),
        groups=groups,
        order=order,
        starts=starts,
    )


def _group(start: int, lengths: list[int], device: torch.device) -> AttentionGroup:
    longest, count, total = lengths[-1], len(lengths), sum(lengths)
    if lengths[0] == longest:
        return AttentionGroup(start, start + total, count, longest, None, None)
    columns = np.arange(longest)
    valid = columns[None, :] < np.asarray(lengths)[:, None]
    offsets = np.concatenate([[0], np.cumsum(lengths)[:-1]])
    grid = np.where(valid, offsets[:, None] + columns[None, :], 0)
    return AttentionGroup(
        start,
        start + total,
        count,
        longest,
        torch.from_numpy(grid.reshape(-1)).to(device),
        torch.from_numpy(np.flatnonzero(valid.reshape(-1))).to(device),
    )
