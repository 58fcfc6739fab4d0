"""Fencing tokens per run: whoever holds a run raises its token, and older holders are refused from then on, across
restarts of the worker too."""

from __future__ import annotations

import json
from pathlib import Path

from .durable import write_durably
from .errors import WorkerError, bad_input

_KEPT_RUNS = 10_000


class FenceTable:
    def __init__(self, path: Path):
        self._path = path
        self._highest: dict[str, int] = {}
        if path.exists():
            self._highest = {str(run): int(token) for run, token in json.loads(path.read_text()).items()}

    def check(self, headers: dict[str, str]) -> str | None:
        """Reads X-Rolldeck-Run and X-Rolldeck-Fence; returns the run, None when the caller names none.

        @raises WorkerError fenced when a higher token of the run was seen before."""
        run, raw = headers.get("x-rolldeck-run"), headers.get("x-rolldeck-fence")
        if run is None and raw is None:
            return None
        if not run or not raw or not raw.isdigit() or len(run) > 255 or len(raw) > 18:
            raise bad_input("X-Rolldeck-Run and X-Rolldeck-Fence (a whole number) go together", "X-Rolldeck-Fence")
        token = int(raw)
        highest = self._highest.get(run, -1)
        if token < highest:
            raise WorkerError("fenced", f"run {run} belongs to holder {highest} now", "X-Rolldeck-Fence")
        if token > highest:
            self._highest.pop(run, None)
            self._highest[run] = token
            while len(self._highest) > _KEPT_RUNS:
                del self._highest[next(iter(self._highest))]
            write_durably(self._path, json.dumps(self._highest).encode())
        return run
