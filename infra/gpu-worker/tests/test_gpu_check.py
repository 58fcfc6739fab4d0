"""The script that is prepared for a GPU runs, on this machine's CPU, and says what it could not measure."""

from __future__ import annotations

import json
import subprocess
import sys

from worker_process import ROOT

SCRIPT = ROOT.parents[1] / "e2e" / "bench" / "gpu" / "gpu_check.py"


def test_the_gpu_script_runs_on_a_cpu():
    command = [sys.executable, str(SCRIPT), "--tiny", "--device", "cpu", "--dtype", "bfloat16"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    result = json.loads(done.stdout.splitlines()[-1])
    assert (result["kind"], result["dtype"], result["gpu"]["utilisation"]) == ("cpu", "bfloat16", None)
    for part in ("sampling", "update", "transformersSampling", "transformersUpdate"):
        assert result[part]["tokensPerS"] > 0, result["missing"]
    assert result["sampling"]["prefillTokensPerS"] > 0 and result["sampling"]["decodeTokensPerS"] > 0
    # A CPU has no peak; and a gap of exactly nothing would be a sampler that was not asked.
    assert result["update"]["mfu"] is None
    assert 0 < result["logprobGap"]["max"] < 0.1
    assert any(reason.startswith("gpu: ") for reason in result["missing"])
    unmeasured = [reason for reason in result["missing"] if not reason.startswith(("gpu: ", "trlUpdate: "))]
    assert unmeasured == []


def test_what_there_is_no_time_for_is_said():
    done = subprocess.run(
        [sys.executable, str(SCRIPT), "--tiny", "--device", "cpu", "--budget-s", "0"], capture_output=True, text=True
    )
    result = json.loads(done.stdout.splitlines()[-1])
    assert result["sampling"] is None and "sampling: no time was left" in result["missing"]
