"""Reads a log of test output and writes the reward: 1 when every listed test is as its list wants it, else 0.

Usage: grade.py LOG EXPECTED REWARD. EXPECTED holds {"log": "pytest" | "django", "failToPass": [...], "passToPass": [...]}.
A log that is not that of a whole run has no result: nothing is written and the exit code is 2, which is no reward of 0. So has
one that reports no failure although the tests' command says that there was one.
"""

import json
import re
import sys

START = ">>>>> Start Test Output"
END = ">>>>> End Test Output"
BAD = ">>>>> Tests Errored"
EXIT_CODE = re.compile(r">>>>> Test Exit Code:\s*(-?\d+)")

# A line of pytest's summary (-rA) begins with the status.
PYTEST = re.compile(r"(PASSED|FAILED|ERROR|SKIPPED|XFAIL|XPASS) (\S+)")
# A line of unittest (-v 2) ends with it.
DJANGO = re.compile(r"(.+) \.\.\. (ok|OK|FAIL|ERROR|skipped.*|expected failure|unexpected success)$")
WORDS = {"ok": "PASSED", "OK": "PASSED", "FAIL": "FAILED", "ERROR": "ERROR", "expected failure": "XFAIL"}


def pytest_statuses(lines):
    statuses = {}
    for line in lines:
        match = PYTEST.match(line)
        if match:
            # "SKIPPED [3] path:7: why" counts tests and names none.
            if not re.fullmatch(r"\[\d+\]", match[2]):
                statuses[match[2]] = match[1]
    return statuses


def django_statuses(lines):
    statuses = {}
    for line in lines:
        match = DJANGO.match(line.strip())
        if match:
            word = match[2]
            statuses[match[1]] = "SKIPPED" if word.startswith("skipped") else WORDS.get(word, "FAILED")
    return statuses


def read(log, parse):
    start, end = log.find(START), log.rfind(END)
    if BAD in log or start < 0 or end < start:
        return None
    statuses = parse(log[start:end].splitlines())
    code = EXIT_CODE.search(log, end)
    failed = any(status in ("FAILED", "ERROR") for status in statuses.values())
    return None if code and code[1] != "0" and not failed else statuses


def main(log_path, expected_path, reward_path):
    with open(log_path, encoding="utf-8", errors="replace") as file:
        log = file.read()
    with open(expected_path, encoding="utf-8") as file:
        expected = json.load(file)
    statuses = read(log, django_statuses if expected["log"] == "django" else pytest_statuses)
    if not statuses:
        print("the log is not that of a whole run", file=sys.stderr)
        return 2
    good = [name for name in expected["failToPass"] if statuses.get(name) in ("PASSED", "XFAIL")]
    kept = [name for name in expected["passToPass"] if statuses.get(name) in ("PASSED", "XFAIL", "SKIPPED")]
    resolved = len(good) == len(expected["failToPass"]) and len(kept) == len(expected["passToPass"])
    result = {"reward": int(resolved), "fail_to_pass": len(good), "pass_to_pass": len(kept)}
    with open(reward_path, "w", encoding="utf-8") as file:
        json.dump(result, file)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:4]))
