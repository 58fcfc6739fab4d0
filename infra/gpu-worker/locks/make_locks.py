"""Writes cpu.txt and cuda.txt: every package of the GPU worker's image with its hashes, for Python 3.11 on Linux x86-64.

Invariants: only metadata is read, no CUDA wheel is fetched; a lock says in its head which requirements it was made of, and
`npm test` fails when they have changed since. Run with the Python of an environment that has `requirements.lock` of this folder:

    python make_locks.py cuda cpu --cpu-torch FOLDER_OR_INDEX
    python make_locks.py cuda --check
"""

from __future__ import annotations

import argparse
import hashlib
import re
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
PYTHON = "3.11"
PLATFORM = "x86_64-manylinux_2_28"
# The first asks for the second.
REQUIREMENTS = [HERE.parent / name for name in ("requirements-image.txt", "requirements.txt")]


def requirements_hash() -> str:
    """Of what a lock is made of, without comments and blanks."""
    lines = [line.strip() for path in REQUIREMENTS for line in path.read_text().splitlines()]
    meant = "\n".join(line for line in lines if line and not line.startswith("#"))
    return hashlib.sha256(meant.encode()).hexdigest()


def head(variant: str) -> str:
    return (
        f"# GPU worker, {variant}. Python {PYTHON}, {PLATFORM}. Written by make_locks.py.\n"
        f"# requirements: {requirements_hash()}\n"
    )


def resolve(variant: str, cpu_torch: str | None, constraints: Path | None) -> str:
    """The lock as the packages' metadata has it now. Exits with the resolver's words when there is no solution."""
    command = [sys.executable, "-m", "uv", "pip", "compile", "--no-config", "--no-header", "--no-annotate", "--quiet"]
    command += ["--generate-hashes", "--only-binary", ":all:", "--python-version", PYTHON, "--python-platform", PLATFORM]
    if variant == "cpu":
        if cpu_torch is None:
            sys.exit("cpu: --cpu-torch is needed: a folder or an index of CPU wheels of torch")
        command += ["--find-links", cpu_torch] if Path(cpu_torch).is_dir() else ["--extra-index-url", cpu_torch]
    if constraints is not None:
        command += ["--constraint", str(constraints)]
    done = subprocess.run([*command, str(REQUIREMENTS[0])], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{variant}: does not resolve\n{done.stderr}")
    return done.stdout


def packages(lock: str) -> dict[str, set[str]]:
    """Hashes by `name==version`."""
    found: dict[str, set[str]] = {}
    for line in lock.splitlines():
        if pinned := re.match(r"^([\w.-]+==\S+)", line):
            current = found.setdefault(pinned.group(1), set())
        if digest := re.search(r"--hash=(sha256:[0-9a-f]{64})", line):
            current.add(digest.group(1))
    return found


def check(variant: str, cpu_torch: str | None) -> None:
    """The committed lock still resolves, to itself, and its hashes are those of the packages."""
    path = HERE / f"{variant}.txt"
    ours = packages(path.read_text())
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as pins:
        pins.write("\n".join(ours))
        pins.flush()
        theirs = packages(resolve(variant, cpu_torch, Path(pins.name)))
    # New wheels of the same version may come; ours must be among them.
    wrong = [name for name in ours.keys() | theirs.keys() if not ours.get(name) or not ours[name] <= theirs.get(name, set())]
    if wrong:
        sys.exit(f"{variant}: not what it resolves to: {', '.join(sorted(wrong))}")
    print(f"{variant}: {len(ours)} packages resolve")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("variants", nargs="+", choices=["cpu", "cuda"])
    parser.add_argument("--cpu-torch", help="folder or index of CPU wheels of torch")
    parser.add_argument("--check", action="store_true", help="write nothing; fail when a lock no longer resolves")
    settings = parser.parse_args()
    for variant in settings.variants:
        if settings.check:
            check(variant, settings.cpu_torch)
            continue
        lock = resolve(variant, settings.cpu_torch, None)
        (HERE / f"{variant}.txt").write_text(head(variant) + lock)
        print(f"{variant}: {len(packages(lock))} packages")


if __name__ == "__main__":
    main()
