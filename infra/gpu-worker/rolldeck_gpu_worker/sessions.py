"""Client sessions: leases renewed by heartbeats or by use of a session's models. Lives on the event loop's thread."""

from __future__ import annotations

import secrets
import time
from dataclasses import dataclass, field

from .errors import WorkerError


@dataclass
class Session:
    session_id: str
    user_metadata: dict | None = None
    heard_at: float = field(default_factory=time.time)


class Sessions:
    """@param lease_s: silence after which a session is over."""

    def __init__(self, lease_s: float):
        self._lease_s = lease_s
        self._sessions: dict[str, Session] = {}

    @property
    def lease_s(self) -> float:
        return self._lease_s

    def open(self, user_metadata: dict | None = None) -> Session:
        session = Session(f"s-{secrets.token_hex(8)}", user_metadata)
        self._sessions[session.session_id] = session
        return session

    def ids(self) -> list[str]:
        return list(self._sessions)

    def get(self, session_id: object) -> Session:
        """@raises WorkerError unknown_model for a session that ended or belongs to another process."""
        session = self._sessions.get(session_id) if isinstance(session_id, str) else None
        if session is None:
            raise WorkerError("unknown_model", "no such session in this process", "session_id")
        return session

    def heartbeat(self, session_id: object) -> Session:
        """As `get`, and renews the lease."""
        session = self.get(session_id)
        session.heard_at = time.time()
        return session

    def expired(self, used_at: dict[str, float]) -> list[Session]:
        """Sessions silent past their lease; `used_at` tells when each session's models were last used."""
        limit = time.time() - self._lease_s
        return [s for s in self._sessions.values() if max(s.heard_at, used_at.get(s.session_id, 0.0)) < limit]

    def close(self, session: Session) -> None:
        self._sessions.pop(session.session_id, None)
