"""The keeper of a worker, as a process of its own with small programs in the worker's place."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from rolldeck_gpu_worker import keeper
from worker_process import ROOT

STAMP = r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z "


def command(program: str, *options: str, flags: tuple[str, ...] = ()) -> list[str]:
    worker = f"{sys.executable} -c '{program}'"
    return [sys.executable, "-m", "rolldeck_gpu_worker.keeper", *options, "--worker", worker, "--", *flags]


def run(program: str, *options: str, flags: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command(program, *options, flags=flags), cwd=ROOT, capture_output=True, text=True, timeout=60)


def until(holds: Callable[[], bool]) -> None:
    for _ in range(1_200):
        if holds():
            return
        time.sleep(0.05)
    raise AssertionError("it did not come to that")


def test_every_line_has_its_time_and_the_exit_code_is_the_workers() -> None:
    ended = run('import sys; print("one two"); print("three", file=sys.stderr); sys.exit(3)')
    assert ended.returncode == 3
    lines = ended.stdout.splitlines()
    assert sorted(re.sub(STAMP, "", line) for line in lines) == ["one two", "three"]
    assert all(re.match(STAMP, line) for line in lines)
    # All of one length: the order of their text is that of their times.
    assert lines == sorted(lines)


def test_a_worker_that_died_of_a_signal_is_told_as_shells_do() -> None:
    assert run("import os; os.kill(os.getpid(), 9)").returncode == 137


def test_it_passes_on_the_request_to_end_and_waits_for_what_the_worker_does_about_it(tmp_path: Path) -> None:
    program = (
        "import signal, sys, time\n"
        'signal.signal(signal.SIGTERM, lambda *_: (print("saved", flush=True), sys.exit(0)))\n'
        'print("up", flush=True); time.sleep(60)'
    )
    started = subprocess.Popen(command(program, "--folder", str(tmp_path)), cwd=ROOT)
    log = tmp_path / "log"
    until(lambda: log.exists() and "up" in log.read_text())
    running = json.loads((tmp_path / "running.json").read_text())
    assert running["keeper"]["pid"] == started.pid
    assert running["worker"]["start"] == keeper.process_start(running["worker"]["pid"])
    assert not (tmp_path / "ended.json").exists()
    started.send_signal(signal.SIGTERM)
    assert started.wait(60) == 0
    assert log.read_text().splitlines()[-1].endswith("Z saved")
    assert json.loads((tmp_path / "ended.json").read_text()) == {"exitCode": 0, "outOfMemory": False}
    assert keeper.process_start(running["worker"]["pid"]) is None


def test_where_it_listens_is_read_from_its_line(tmp_path: Path) -> None:
    run('print("{\\"url\\": broken"); print("{\\"url\\": \\"http://127.0.0.1:1\\", \\"boot_id\\": \\"b\\"}")', "--folder", str(tmp_path))
    assert json.loads((tmp_path / "running.json").read_text())["url"] == "http://127.0.0.1:1"


@pytest.mark.parametrize("of_a_child", [False, True])
def test_what_takes_more_memory_than_it_may_is_killed_and_that_is_told(tmp_path: Path, of_a_child: bool) -> None:
    # Each of its pages is written: what was only asked for holds nothing.
    (tmp_path / "large.py").write_text('import os, time; print(os.getpid(), flush=True); held = b"x" * (200 << 20); time.sleep(60)')
    (tmp_path / "parent.py").write_text("import subprocess, sys; subprocess.run([sys.executable, sys.argv[1]])")
    folder = tmp_path / "kept"
    folder.mkdir()
    worker = f"{sys.executable} {tmp_path / 'parent.py' if of_a_child else ''} {tmp_path / 'large.py'}"
    options = ["--memory-mb", "100", "--folder", str(folder), "--worker", worker, "--"]
    ended = subprocess.run([sys.executable, "-m", "rolldeck_gpu_worker.keeper", *options], cwd=ROOT, timeout=60)
    assert ended.returncode == keeper.OUT_OF_MEMORY_EXIT
    assert json.loads((folder / "ended.json").read_text()) == {"exitCode": 137, "outOfMemory": True}
    log = (folder / "log").read_text()
    assert "more than the 100 MB" in log
    large = int(log.splitlines()[0].split()[1])
    until(lambda: keeper.held_bytes(large) == 0)


def test_it_listens_towards_a_place_and_never_on_a_public_address(monkeypatch: pytest.MonkeyPatch) -> None:
    # One of ours is taken as it is, whatever the machine's first one is.
    ended = run("import sys; print(sys.argv[1:])", "--towards", "127.0.0.2:6379", flags=("--port", "1"))
    assert ended.stdout.strip().endswith("['--port', '1', '--host', '127.0.0.2']")

    class Public:
        def __init__(self, *_: object) -> None: ...
        def __enter__(self) -> Public:
            return self

        def __exit__(self, *_: object) -> None: ...
        def bind(self, _: object) -> None:
            raise OSError("not ours")

        def connect(self, _: object) -> None: ...
        def getsockname(self) -> tuple[str, int]:
            return "8.8.8.8", 1

    monkeypatch.setattr(keeper.socket, "socket", Public)
    with pytest.raises(SystemExit, match="neither loopback nor private"):
        keeper.address_towards("10.0.0.5:6379")


def test_the_worker_can_gain_no_privileges_and_leaves_no_core(tmp_path: Path) -> None:
    ended = run('print(open("/proc/self/status").read()); import resource; print("core", resource.getrlimit(resource.RLIMIT_CORE))')
    assert re.search(r"NoNewPrivs:\s+1", ended.stdout)
    assert "core (0, 0)" in ended.stdout


def test_a_log_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keeper, "_MAX_LOG_BYTES", 1_000)
    log = keeper.Log(tmp_path)
    for number in range(200):
        log.say(f"line {number}".encode())
    assert sorted(os.listdir(tmp_path)) == ["log", "log.1"]
    assert all((tmp_path / name).stat().st_size < 1_100 for name in ("log", "log.1"))
    assert (tmp_path / "log").read_text().endswith("line 199\n")
