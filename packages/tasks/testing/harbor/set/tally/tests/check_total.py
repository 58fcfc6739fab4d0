import json
import os
import pathlib

path = pathlib.Path("/app/total.txt")
text = path.read_text() if path.exists() else ""
right = text.strip() == os.environ["EXPECTED"]
print("total is", repr(text))
report = {"results": {"tests": [{"name": "test_total", "status": "passed" if right else "failed"}]}}
pathlib.Path("/logs/verifier/ctrf.json").write_text(json.dumps(report))
pathlib.Path("/logs/verifier/reward.json").write_text(json.dumps({"reward": int(right), "bytes": len(text)}))
