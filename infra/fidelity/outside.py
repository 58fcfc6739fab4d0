"""What the comparisons with other packages share: reading the batches, and writing what a package's own functions say.

A package's `reference.py` registers operations. Each is called once per batch and answers a dict with any of: `value` (a
number), `gradient` (rows × T, with respect to the log-probs under training), `advantages` and `values` (rows × T or rows).
An operation that raises on a batch is written under `missing` with its error and has no numbers: never a zero in their place.
"""
import importlib.metadata
import json
import sys
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable

CLIP_LOW = 0.8
CLIP_HIGH = 1.28
DUAL_CLIP = 3.0
NORMALISER = 4


@dataclass(frozen=True)
class Batch:
    """One batch of the committed file, as nested lists."""

    name: str
    groups: list[int]
    rewards: list[float]
    advantages: list[float]
    mask: list[list[int]]
    new: list[list[float]]
    old: list[list[float]]
    rollout: list[list[float]]
    ref: list[list[float]]

    def group_bounds(self) -> list[tuple[int, int]]:
        """[start, end) of each group's rows, which lie beside each other."""
        starts = [row for row, group in enumerate(self.groups) if row == 0 or self.groups[row - 1] != group]
        return list(zip(starts, [*starts[1:], len(self.groups)], strict=True))

    def reward_per_token(self) -> list[list[float]]:
        """The reward at the row's last trained token, or at its first where none is trained."""
        rows = []
        for reward, mask in zip(self.rewards, self.mask, strict=True):
            trained = [t for t, kept in enumerate(mask) if kept == 1]
            last = trained[-1] if trained else 0
            rows.append([reward if t == last else 0.0 for t in range(len(mask))])
        return rows


Operation = Callable[[Batch], dict[str, Any]]
# One batch in the package's own shape, as our exporter wrote it.
ExportOperation = Callable[[Any], dict[str, Any]]


class Reference:
    """The operations of one package, and how its numbers are written."""

    def __init__(self, packages: list[str], dtype: str) -> None:
        self.packages = packages
        self.dtype = dtype
        self.operations: dict[str, Operation] = {}
        self.export_operations: dict[str, ExportOperation] = {}

    def add(self, name: str, operation: Operation) -> None:
        """Registers an operation under the name by which the comparison knows it."""
        self.operations[name] = operation

    def add_export(self, name: str, operation: ExportOperation) -> None:
        """Registers an operation on what our exporter makes of each batch."""
        self.export_operations[name] = operation

    def main(self) -> None:
        """`reference.py <batches.json> <out.json> [<exports.json>]`."""
        batches = {batch.name: batch for batch in read_batches(Path(sys.argv[1]))}
        exports = json.loads(Path(sys.argv[3]).read_text(encoding="utf-8")) if len(sys.argv) > 3 else {}
        ops: dict[str, dict[str, Any]] = {}
        missing: list[dict[str, str]] = []
        given = [
            *((name, operation, batches) for name, operation in self.operations.items()),
            *((name, operation, exports) for name, operation in self.export_operations.items()),
        ]
        for name, operation, inputs in given:
            try:
                ops[name] = {key: as_lists(operation(value)) for key, value in inputs.items()}
            except Exception as error:  # noqa: BLE001 - whatever it is, it is told and not replaced by a number
                traceback.print_exc()
                missing.append({"what": name, "error": f"{type(error).__name__}: {error}"})
        versions = {name: importlib.metadata.version(name) for name in self.packages}
        answer = {"versions": versions, "dtype": self.dtype, "ops": ops, "missing": missing}
        Path(sys.argv[2]).write_text(json.dumps(answer, allow_nan=False), encoding="utf-8")


def read_batches(path: Path) -> list[Batch]:
    """The batches of the committed file."""
    stored = json.loads(path.read_text(encoding="utf-8"))
    return [Batch(**{key: value for key, value in batch.items() if key != "seed"}) for batch in stored]


def as_lists(answer: dict[str, Any]) -> dict[str, Any]:
    """Tensors and arrays as nested lists, scalars as numbers."""
    return {key: value.tolist() if hasattr(value, "tolist") else value for key, value in answer.items()}
