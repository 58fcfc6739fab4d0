#!/bin/bash
python3 - <<'PY'
import json
import pathlib

out = pathlib.Path("/app/out/bytes.bin")
exact = out.exists() and out.read_bytes() == bytes(range(256))
listed = "bytes.bin" in pathlib.Path("/logs/artifacts/listing.txt").read_text().split()
# Only what the task names comes here.
alone = not pathlib.Path("/app/notes.txt").exists() and not pathlib.Path("/app/out/junk.tmp").exists()
reward = 1 if exact and listed and alone else 0
pathlib.Path("/logs/verifier/reward.json").write_text(json.dumps({"reward": reward, "alone": int(alone)}))
PY
