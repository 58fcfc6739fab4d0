"""`python -m rolldeck_gpu_worker.keeper [options] -- FLAGS`: runs one worker where no container engine looks after it.

It begins every line of the worker with its time, passes SIGTERM and SIGINT on, ends a worker that takes more memory than it may, and
exits as the worker did. Invariants: it needs nothing beside the standard library; whatever it is asked to listen on is loopback or a
private address; with `--folder` what it writes is whole at any moment, and `ended.json` is its last word."""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import ipaddress
import json
import os
import re
import resource
import shlex
import signal
import socket
import subprocess
import sys
import threading
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, BinaryIO

OUT_OF_MEMORY_EXIT = 84
_LOOK_S = 0.5
_MAX_LINE = 32_768
_MAX_LOG_BYTES = 20_000_000
_NO_NEW_PRIVILEGES = 38
# As the control plane has them: what is "private" to Python differs by its version.
_PRIVATE = [
    ipaddress.ip_network(network)
    for network in ("127.0.0.0/8", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "169.254.0.0/16")
    + ("::1/128", "fc00::/7", "fe80::/10")
]


class Log:
    """Lines with their times, on our own output or in a folder: there the last of them, at most twice `_MAX_LOG_BYTES`."""

    def __init__(self, folder: Path | None):
        self._path = None if folder is None else folder / "log"
        self._file: BinaryIO = sys.stdout.buffer if self._path is None else open(self._path, "ab")
        self._lock = threading.Lock()

    def say(self, line: bytes) -> None:
        time = datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ").encode()
        with self._lock:
            if self._path is not None and self._file.tell() > _MAX_LOG_BYTES:
                self._file.close()
                os.replace(self._path, self._path.with_name("log.1"))
                self._file = open(self._path, "ab")
            self._file.write(time + b" " + line + b"\n")
            self._file.flush()


def process_start(pid: int) -> str | None:
    """When it started, as the kernel counts: a number is used again, number and start are not."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return None
    # The name may hold blanks and brackets.
    return stat[stat.rindex(b")") + 2 :].split()[19].decode()


def family(pid: int) -> list[int]:
    """A process and what it started."""
    found = [pid]
    for one in found:
        try:
            children = [task.read_text().split() for task in Path(f"/proc/{one}/task").glob("*/children")]
        except OSError:
            continue
        found += [int(child) for those in children for child in those]
    return found


def held_bytes(pid: int) -> int:
    """Memory that can't be read back from a file."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    return sum(int(kib) * 1024 for kib in re.findall(r"^Rss(?:Anon|Shmem):\s+(\d+) kB", status, re.MULTILINE))


def address_towards(place: str) -> str:
    """The address of this machine from which `HOST:PORT` is reached: HOST itself, where that is ours. Nothing is sent."""
    host, _, port = place.rpartition(":")
    family, kind, _, _, target = socket.getaddrinfo(host.strip("[]"), int(port), type=socket.SOCK_DGRAM)[0]
    own: str
    with socket.socket(family, kind) as probe:
        try:
            probe.bind((target[0], 0))
        except OSError:
            probe.connect(target)
        own = probe.getsockname()[0]
    if not any(ipaddress.ip_address(own) in network for network in _PRIVATE):
        raise SystemExit(f"keeper: {own}, from which {place} is reached, is neither loopback nor private: workers have no TLS")
    return own


def write_whole(path: Path, content: dict[str, Any]) -> None:
    temporary = path.with_name(f".{path.name}.tmp")
    temporary.write_text(json.dumps(content))
    os.replace(temporary, path)


def _restrict() -> None:
    """In the worker's process, before it is one: no way to gain privileges, no core file with its key, first to go when memory ends."""
    ctypes.CDLL(None).prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("500")


class Keeper:
    def __init__(self, command: list[str], folder: Path | None, memory_mb: int | None):
        self._command = command
        self._folder = folder
        self._memory = None if memory_mb is None else memory_mb << 20
        self._log = Log(folder)
        self._out_of_memory = False
        self._facts: dict[str, Any] = {"keeper": {"pid": os.getpid(), "start": process_start(os.getpid())}, "url": None}

    def run(self) -> int:
        """@returns what to exit with"""
        worker = subprocess.Popen(
            self._command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, preexec_fn=_restrict
        )
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda got, _frame: worker.send_signal(got))
        self._facts["worker"] = {"pid": worker.pid, "start": process_start(worker.pid)}
        self._write_facts()
        reading = threading.Thread(target=self._read, args=(worker.stdout,), daemon=True)
        reading.start()
        self._watch(worker)
        # What it started itself may hold its output open.
        reading.join(timeout=2)
        code = worker.returncode
        exit_code = 137 if self._out_of_memory else 128 - code if code < 0 else code
        if self._folder is not None:
            write_whole(self._folder / "ended.json", {"exitCode": exit_code, "outOfMemory": self._out_of_memory})
        return OUT_OF_MEMORY_EXIT if self._out_of_memory else exit_code

    def _watch(self, worker: subprocess.Popen[bytes]) -> None:
        while True:
            try:
                worker.wait(None if self._memory is None else _LOOK_S)
                return
            except subprocess.TimeoutExpired:
                self._bound_memory(worker.pid)

    def _bound_memory(self, pid: int) -> None:
        those = family(pid)
        if self._memory is None or sum(held_bytes(one) for one in those) <= self._memory:
            return
        if not self._out_of_memory:
            self._log.say(f"keeper: it holds more than the {self._memory >> 20} MB that it may, and is killed".encode())
        self._out_of_memory = True
        for one in those:
            with contextlib.suppress(ProcessLookupError):
                os.kill(one, signal.SIGKILL)

    def _read(self, output: BinaryIO) -> None:
        while line := output.readline(_MAX_LINE):
            line = line.rstrip(b"\n")
            self._log.say(line)
            if self._facts["url"] is None and line.startswith(b'{"url"'):
                self._take_url(line)

    def _take_url(self, line: bytes) -> None:
        try:
            self._facts["url"] = str(json.loads(line)["url"])
        except (ValueError, KeyError):
            return
        self._write_facts()

    def _write_facts(self) -> None:
        if self._folder is not None:
            write_whole(self._folder / "running.json", self._facts)


def main() -> None:
    parser = argparse.ArgumentParser(prog="rolldeck_gpu_worker.keeper", description=__doc__)
    parser.add_argument("--folder", type=Path, help="gets its log, running.json and ended.json; without it the log is our output")
    parser.add_argument("--towards", metavar="HOST:PORT", help="listen at this machine's address from which that is reached")
    parser.add_argument("--memory-mb", type=int, help="looked at twice a second; without it the machine's")
    parser.add_argument("--worker", help="what to run in place of this Python's worker, as a shell would read it")
    parser.add_argument("flags", nargs="*", help="the worker's, behind --")
    args = parser.parse_args()
    command = [sys.executable, "-m", "rolldeck_gpu_worker"] if args.worker is None else shlex.split(args.worker)
    host = [] if args.towards is None else ["--host", address_towards(args.towards)]
    sys.exit(Keeper([*command, *args.flags, *host], args.folder, args.memory_mb).run())


if __name__ == "__main__":
    main()
