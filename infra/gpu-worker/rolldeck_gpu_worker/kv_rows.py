"""Key/value memory of a sampling batch: rows of growing capacity, kept dense so that the decode step reads a plain
slice. Only the engine thread touches it."""

from __future__ import annotations

import torch

from .model_config import ModelConfig

_LENGTH_QUANTUM = 64


class KvRows:
    """[layer][rows, 2*kv_heads, capacity, head_dim]; keys are the first kv_heads, values the rest."""

    def __init__(self, config: ModelConfig, device: torch.device, dtype: torch.dtype = torch.float32):
        self._config = config
        self._device = device
        self._dtype = dtype
        self._rows = 0
        self._capacity = 0
        self._layers: list[torch.Tensor] = []

    @property
    def bytes(self) -> int:
        return sum(layer.numel() * layer.element_size() for layer in self._layers)

    def reserve(self, rows: int, length: int) -> None:
        """Makes room for `rows` rows of `length` tokens; contents stay."""
        if rows <= self._rows and length <= self._capacity:
            return
        c = self._config
        new_rows = max(self._rows, 1 << (rows - 1).bit_length())
        rounded = -(-length // _LENGTH_QUANTUM) * _LENGTH_QUANTUM
        new_capacity = max(self._capacity, min(rounded, c.max_context))
        grown = []
        for index in range(c.layers):
            shape = (new_rows, 2 * c.kv_heads, new_capacity, c.head_dim)
            layer = torch.zeros(shape, device=self._device, dtype=self._dtype)
            if self._layers:
                layer[: self._rows, :, : self._capacity] = self._layers[index]
            grown.append(layer)
        self._layers, self._rows, self._capacity = grown, new_rows, new_capacity

    def write(self, layer: int, rows: torch.Tensor, positions: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> None:
        """Stores keys and values [tokens, kv_heads, head_dim] at (row, position) of each token."""
        self._layers[layer][rows, :, positions] = torch.cat([k, v], dim=1)

    def read(self, layer: int, start: int, end: int, length: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Keys and values [rows, kv_heads, length, head_dim] of a row range, without a copy."""
        view = self._layers[layer][start:end, :, :length]
        heads = self._config.kv_heads
        return view[:, :heads], view[:, heads:]

    def move(self, source: int, target: int, length: int) -> None:
        """Copies a row's first `length` tokens over another row."""
        for layer in self._layers:
            layer[target, :, :length] = layer[source, :, :length]

    def swap(self, a: int, b: int, length: int) -> None:
        for layer in self._layers:
            kept = layer[a, :, :length].clone()
            layer[a, :, :length] = layer[b, :, :length]
            layer[b, :, :length] = kept

    def take(self, row: int, length: int) -> torch.Tensor:
        """A copy of a row: [layers, 2*kv_heads, length, head_dim]."""
        return torch.stack([layer[row, :, :length] for layer in self._layers])

    def put(self, row: int, kept: torch.Tensor, length: int) -> None:
        """Restores the first `length` tokens of a copy made by `take`."""
        for index, layer in enumerate(self._layers):
            layer[row, :, :length] = kept[index, :, :length]
