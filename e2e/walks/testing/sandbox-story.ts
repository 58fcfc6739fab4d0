/**
 * Rollouts that mended a bug in sandboxes, one well and one badly, one that is at it still: their patches, test reports, outputs, logs
 * and sandboxes as rows.
 */
import { gzipSync } from "node:zlib";
import { artifactNames } from "@rolldeck/contracts/api/artifacts";
import type { SandboxLogLine } from "@rolldeck/contracts/sandbox-log";
import type { TestReport } from "@rolldeck/contracts/test-report";
import { type ScriptedTurn, seedAgentTrajectory } from "@rolldeck/db/testing/seed-agent-trajectory";
import { seedEvents, seedRun, seedStep } from "@rolldeck/db/testing/seed-run";
import { seedSandbox } from "@rolldeck/db/testing/seed-sandbox";
import type pg from "pg";

const esc = "\u001b";
const hostile = `<img src=x onerror="document.title='P'">`;

export const storyPatch = `diff --git a/src/parser/encoder.py b/src/parser/encoder.py
index 3f1a2b4..9c8d7e6 100644
--- a/src/parser/encoder.py
+++ b/src/parser/encoder.py
@@ -41,6 +41,8 @@ class Encoder:
     def quote(self, value: str) -> str:
         """Escapes what would end the attribute."""
-        return value.replace('"', "&quot;")
+        escaped = value.replace("&", "&amp;")
+        # ${hostile}
+        return escaped.replace('"', "&quot;").replace("'", "&#39;")
 
     def close(self) -> None:
         self.stream.flush()
@@ -120,3 +122,3 @@ def main():
 \tencoder = Encoder()
-\tencoder.run()
+\tencoder.run(strict=True)\u202e
 \tencoder.close()
diff --git a/tests/test_encoder.py b/tests/test_encoder.py
deleted file mode 100644
index 1111111..0000000
--- a/tests/test_encoder.py
+++ /dev/null
@@ -1,3 +0,0 @@
-def test_quote():
-    assert quote("'") == "&#39;"
-    assert quote("&") == "&amp;"
diff --git a/docs/old name.md b/docs/new name.md
similarity index 100%
rename from docs/old name.md
rename to docs/new name.md
diff --git a/tools/check.sh b/tools/check.sh
new file mode 100755
index 0000000..e69de29
diff --git a/docs/logo.png b/docs/logo.png
index 1..2 100644
GIT binary patch
literal 10
zcmZQzU|?VXf

`;

const passing = (count: number): TestReport["tests"] =>
  Array.from({ length: count }, (_, index) => ({
    name: `tests/test_parser.py::TestParser::test_case_${index}`,
    status: "passed",
    wanted: "pass-to-pass",
    ok: true,
    message: null,
  }));

export const storyReport: TestReport = {
  version: 1,
  grader: "swe-bench",
  success: false,
  patch: { bytes: storyPatch.length, applied: true, by: "git apply --3way", message: "" },
  command: {
    text: "PYTHONPATH=src python3 -m pytest -rA -q tests/test_encoder.py tests/test_parser.py",
    exitCode: 1,
    timedOut: false,
    durationMs: 6_420,
    timeoutMs: 300_000,
  },
  tests: [
    ...passing(120),
    {
      name: "tests/test_encoder.py::test_quote",
      status: "failed",
      wanted: "fail-to-pass",
      ok: false,
      message: `E  AssertionError: assert '&amp;#39;' == '&#39;'\n${hostile}`,
    },
    { name: "tests/test_encoder.py::test_close", status: "passed", wanted: "fail-to-pass", ok: true, message: null },
    { name: "tests/test_parser.py::test_depth", status: "missing", wanted: "pass-to-pass", ok: false, message: null },
    { name: "tests/test_slow.py::test_slow", status: "failed", wanted: null, ok: null, message: "timeout" },
    { name: "tests/test_slow.py::test_skip", status: "skipped", wanted: null, ok: null, message: null },
  ],
  metrics: { coverage: 0.8125 },
  flags: ["deleted test files"],
  phases: [
    { name: "apply the patch", durationMs: 310 },
    { name: "run the tests", durationMs: 6_420 },
    { name: "read the log", durationMs: 12 },
  ],
};

export const storyOutput = `${esc}[1m============ test session starts ============${esc}[0m
platform linux -- Python 3.11, pytest
collected 125 items

${Array.from({ length: 120 }, (_, index) => `tests/test_parser.py::TestParser::test_case_${index} ${esc}[32mPASSED${esc}[0m`).join("\n")}
tests/test_encoder.py::test_quote ${esc}[31mFAILED${esc}[0m
progress 10 %\rprogress 100 %
${esc}]8;;http://elsewhere.example${esc}\\a link${esc}]8;;${esc}\\ and ${hostile}
${esc}[31m${esc}[1mFAILED${esc}[0m tests/test_encoder.py::test_quote - AssertionError
${esc}[31m2 failed${esc}[0m, ${esc}[32m122 passed${esc}[0m, ${esc}[33m1 skipped${esc}[0m in 6.42s
`;

const logLine = (atMs: number, what: SandboxLogLine["what"], subject: string, more: Partial<SandboxLogLine> = {}) =>
  JSON.stringify({ atMs, what, subject, durationMs: 40, exitCode: null, bytes: null, trouble: null, ...more });
const agentLog = [
  logLine(0, "open", "example/repo:1", { durationMs: 812 }),
  logLine(830, "write", "/testbed/.agent/supervisor.sh", { bytes: 1_824, durationMs: 21 }),
  logLine(900, "exec", "git -C /testbed rev-parse HEAD", { exitCode: 0, bytes: 41 }),
  ...Array.from({ length: 40 }, (_, index) =>
    logLine(1_000 + index * 500, "exec", `sed -n ${index * 20},${index * 20 + 20}p src/parser/encoder.py`, {
      exitCode: 0,
      bytes: 812,
    }),
  ),
  logLine(22_000, "exec", "python3 -m pytest -q tests/test_encoder.py", {
    exitCode: 1,
    durationMs: 6_310,
    bytes: 18_212,
    trouble: "E  AssertionError: assert '&amp;#39;' == '&#39;'\n1 failed",
  }),
  logLine(29_000, "exec", "sleep 600", {
    durationMs: 60_000,
    trouble: "no result within 60 s; its processes were ended",
  }),
  logLine(90_000, "close", "its agent is done", { durationMs: 61 }),
].join("\n");
const gradeLog = [
  logLine(0, "open", "example/repo:1", { durationMs: 790 }),
  logLine(800, "exec", "git apply --3way /tmp/patch.diff", { exitCode: 0 }),
  logLine(900, "exec", "bash /eval.sh", { exitCode: 1, durationMs: 6_420, bytes: 9_120 }),
].join("\n");

const call = (name: string, args: object): string =>
  `<tool_call>${JSON.stringify({ name, arguments: args })}</tool_call>`;
const fullListing = `${Array.from({ length: 900 }, (_, index) => `src/file_${index}.py`).join("\n")}\n`;
const turns: readonly ScriptedTurn[] = [
  {
    added: [{ origin: "observation", text: "The encoder does not escape apostrophes. Mend it." }],
    says: `I look at what there is.\n${call("bash", { command: "find src -name '*.py'" })}`,
    calls: [
      {
        name: "bash",
        arguments: { command: "find src -name '*.py'" },
        output: "src/file_0.py\n… 890 lines cut …\nsrc/file_899.py",
        wholeBytes: fullListing.length,
        artifact: fullListing,
      },
    ],
  },
  {
    added: [{ origin: "observation", text: "src/file_0.py …" }],
    says: `I run the tests.\n${call("bash", { command: "python3 -m pytest -q tests/test_encoder.py" })}`,
    calls: [
      {
        name: "bash",
        arguments: { command: "python3 -m pytest -q tests/test_encoder.py" },
        output: `${esc}[31mF${esc}[0m\n1 failed`,
      },
    ],
  },
  {
    added: [{ origin: "observation", text: "1 failed" }],
    says: call("submit", {}),
    calls: [{ name: "submit", arguments: {}, output: "" }],
  },
];

export interface SandboxStory {
  readonly runId: string;
  /** Graded, with everything there is. */
  readonly wrong: string;
  /** At it still: its sandbox is in use. */
  readonly live: string;
  readonly liveSandbox: string;
  readonly keptSandbox: string;
}

async function seedArtifact(pool: pg.Pool, rolloutId: string, turn: number, name: string, text: string): Promise<void> {
  const bytes = Buffer.from(text);
  await pool.query(
    `insert into artifacts (rollout_id, attempt, turn, index, name, media_type, bytes, stored_bytes, content)
     values ($1, 1, $2, 0, $3, 'text/plain; charset=utf-8', $4::int, $4::int, $5)`,
    [rolloutId, turn, name, bytes.length, gzipSync(bytes)],
  );
}

async function seedSpans(
  pool: pg.Pool,
  runId: string,
  rolloutId: string,
  ends: readonly (number | null)[],
): Promise<void> {
  const stages = ["init", "run", "evaluate"];
  let from = 0;
  for (const [index, end] of ends.entries()) {
    await pool.query(
      `insert into stage_spans (rollout_id, attempt, stage, run_id, ready_at, started_at, ended_at, worker_id)
       values ($1, 1, $2, $3, now() - interval '200 s' + $4::float8 * interval '1 s', now() - interval '198.5 s' + $4::float8 * interval '1 s',
         now() - interval '200 s' + $5::float8 * interval '1 s', 'w1')`,
      [rolloutId, stages[index], runId, from, end],
    );
    from = end ?? from;
  }
}

export async function seedSandboxStory(pool: pg.Pool): Promise<SandboxStory> {
  const runId = await seedRun(pool, { config: { name: "mend the encoder", agent: { dialect: "hermes" } } });
  await seedEvents(pool, runId, 1);
  const { rolloutIds } = await seedStep(pool, runId, {
    step: 1,
    state: "gathering",
    rollouts: [
      { reward: 0, ending: "finish_tool" },
      { reward: null, ending: null },
      { reward: 1, ending: "finish_tool" },
    ],
  });
  const [wrong = "", live = ""] = rolloutIds;
  await pool.query("update rollouts set flags = '{deleted test files}' where id = $1", [wrong]);
  await seedAgentTrajectory(pool, wrong, turns);
  await seedAgentTrajectory(pool, live, turns.slice(0, 1));
  await seedArtifact(pool, wrong, 0, artifactNames.agentLog, logLine(0, "open", "only the beginning"));
  await seedArtifact(pool, wrong, 3, artifactNames.patch, storyPatch);
  await seedArtifact(pool, wrong, 3, artifactNames.tests, JSON.stringify(storyReport));
  await seedArtifact(pool, wrong, 3, artifactNames.testOutput, storyOutput);
  await seedArtifact(pool, wrong, 3, artifactNames.agentLog, agentLog);
  await seedArtifact(pool, wrong, 3, artifactNames.gradeLog, gradeLog);
  await seedArtifact(pool, live, 0, artifactNames.agentLog, agentLog.split("\n").slice(0, 12).join("\n"));
  await seedSpans(pool, runId, wrong, [4, 96, 108]);
  await seedSpans(pool, runId, live, [4, null]);
  const image = { image: "example/repo-1776-encoder:latest", network: "none" };
  const keptSandbox = await seedSandbox(pool, {
    ...{ runId, rolloutId: wrong, state: "kept", keepMinutes: 25, reason: "its rollout is over" },
    ...{ ...image, createdSecondsAgo: 199, phases: { open: 812, setUp: 1_420, run: 71_300, collect: 240 } },
  });
  await seedSandbox(pool, {
    ...{ runId, rolloutId: wrong, purpose: "grade", state: "closed", reason: "graded", ...image },
    ...{ createdSecondsAgo: 100, phases: { open: 790, verify: 7_020, close: 58 } },
  });
  const liveSandbox = await seedSandbox(pool, {
    ...{ runId, rolloutId: live, state: "open", ...image, createdSecondsAgo: 197, phases: { open: 830, setUp: 1_100 } },
  });
  return { runId, wrong, live, liveSandbox, keptSandbox };
}
