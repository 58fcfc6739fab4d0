"""The trainer's sign of life. A thread renews the lease while the trainer computes, so that an update may take longer
than it; when the process dies the lease runs out and Rolldeck pauses the run."""

from __future__ import annotations

import threading

from .api import RolldeckApi
from .errors import ApiError, BridgeError, RunEndedError

# The contract's bounds.
_SHORTEST_S, _LONGEST_S = 5.0, 3_600.0
_ENDED = frozenset({"stopped", "completed", "failed"})
# As the planner says it.
_SILENT = "the trainer's lease"


class TrainerLease:
    """@param lease_s: how long the run goes on without a sign of the trainer"""

    def __init__(self, api: RolldeckApi, lease_s: float = 60.0):
        if not _SHORTEST_S <= lease_s <= _LONGEST_S:
            raise ValueError(f"lease_s: {lease_s} is outside {_SHORTEST_S:.0f} to {_LONGEST_S:.0f}")
        self._api = api
        self._lease_s = lease_s
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._refused: BridgeError | None = None
        self._status = ""

    def begin(self, policy_version: int) -> None:
        """Tells the version that serves, and renews the lease from here on.

        @raises ApiError when the run has no outside trainer or is over"""
        self._refused = None
        self._status = self._api.heartbeat(int(self._lease_s * 1000), policy_version)
        if self._thread is None or not self._thread.is_alive():
            self._stop.clear()
            self._thread = threading.Thread(target=self._renew, name="rolldeck-lease", daemon=True)
            self._thread.start()

    def check(self) -> None:
        """Lets a run go on that was paused for want of a trainer; a pause that a person asked for is theirs to end.

        @raises RunEndedError, or what the server refused the last heartbeat with"""
        if self._refused is not None:
            raise self._refused
        if self._status in _ENDED:
            raise RunEndedError(f"run {self._api.run_id} is {self._status}")
        if self._status not in ("pausing", "paused"):
            return
        run = self._api.run()
        self._status = run["status"]
        if self._status == "paused" and (run.get("reason") or "").startswith(_SILENT):
            self._status = self._api.resume()

    def close(self) -> None:
        """Renews no more; the run pauses when the lease is over."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join(timeout=1.0)

    def _renew(self) -> None:
        while not self._stop.wait(self._lease_s / 3):
            try:
                self._status = self._api.heartbeat(int(self._lease_s * 1000))
            except ApiError as error:
                # The run is over, or the token no longer counts: the next batch says so.
                self._refused = error
                return
            except BridgeError:
                # The server is away; what comes next may reach it.
                continue
