/** The scripted endpoint over real HTTP: who gets which policy, and that every turn follows from the conversation alone. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { z } from "zod";
import { patchEdits } from "./patch-edits.ts";
import type { PolicyRow } from "./policies.ts";
import { type ScriptedEndpoint, startScriptedEndpoint } from "./scripted-endpoint.ts";

const patch = [
  "diff --git a/pkg/a.py b/pkg/a.py",
  "index 1..2 100644",
  "--- a/pkg/a.py",
  "+++ b/pkg/a.py",
  "@@ -3,4 +3,5 @@ def first(x):",
  " one",
  "-two",
  "+2",
  "+2.5",
  " three",
  " ",
  "@@ -20 +21 @@",
  "---x",
  "+--y",
  "",
].join("\n");
const row: PolicyRow = {
  instance_id: "a-bug",
  problem_statement: "Two is not a number.\n",
  patch,
  test_patch: "diff --git a/tests/test_a.py b/tests/test_a.py\n",
  eval_script: "#!/bin/bash\n( python3 -m pytest tests/test_a.py ) 2>&1\n",
};

test("a patch becomes edits, hunk by hunk", () => {
  expect(patchEdits(patch)).toEqual([
    { file: "pkg/a.py", line: 3, within: "def first(x):", before: "one\ntwo\nthree\n", after: "one\n2\n2.5\nthree\n" },
    { file: "pkg/a.py", line: 20, within: "", before: "--x", after: "--y" },
  ]);
  expect(() => patchEdits("diff --git a/x b/x\nnew file mode 100644\n")).toThrow(/not a change of a text file/);
});

let endpoint: ScriptedEndpoint;
beforeAll(async () => {
  endpoint = await startScriptedEndpoint([row]);
});
afterAll(() => endpoint.close());

const Reply = z.object({
  choices: z.array(
    z.object({
      message: z.object({
        content: z.string(),
        tool_calls: z.array(z.object({ function: z.object({ name: z.string(), arguments: z.string() }) })),
      }),
    }),
  ),
});

/** Asks as an agent would, until its last tool call. @returns the calls' texts */
async function converse(key: string, tools: readonly string[], turns: number): Promise<string[]> {
  const messages: unknown[] = [{ role: "user", content: `Mend this:\n<issue>\n${row.problem_statement}</issue>` }];
  const calls: string[] = [];
  for (let place = 0; place < turns; place += 1) {
    const response = await fetch(`${endpoint.server.url}/v1/chat/completions`, {
      method: "POST",
      headers: { "content-type": "application/json", "x-rolldeck-affinity": key },
      body: JSON.stringify({
        model: "m",
        messages,
        tools: tools.map((name) => ({ type: "function", function: { name } })),
      }),
    });
    const message = Reply.parse(await response.json()).choices[0]?.message;
    const call = message?.tool_calls[0]?.function;
    calls.push(`${call?.name} ${call?.arguments}`);
    messages.push({ role: "assistant", content: message?.content }, { role: "tool", content: "done" });
  }
  return calls;
}

test("rollouts of an instance get the four policies in turn, and keep theirs", async () => {
  const react = ["bash", "str_replace_editor", "search", "submit"];
  const solver = await converse("r1", react, 8);
  expect(solver.map((call) => call.split(" ")[0])).toEqual([
    ...["bash", "search", "str_replace_editor", "str_replace_editor", "str_replace_editor", "bash", "bash", "submit"],
  ]);
  expect(solver[1]).toContain('["first"]');
  expect(solver[5]).toContain("python3 -m pytest tests/test_a.py");
  const wrong = await converse("r2", ["execute_bash", "str_replace_editor", "finish"], 3);
  expect(wrong.at(-1)).toMatch(/^finish /);
  const looper = await converse("r3", react, 5);
  expect(new Set(looper).size).toBe(1);
  const deleter = await converse("r4", react, 4);
  expect(deleter[0]).toContain("rm -f /testbed/tests/test_a.py");
  expect(deleter[1]).toContain("conftest.py");
  expect(await converse("r1", react, 2)).toEqual(solver.slice(0, 2));
  expect(endpoint.counts()).toEqual({ solver: 1, wrongPatch: 1, looper: 1, testDeleter: 1 });
  expect(endpoint.policyOf("r3")).toBe("looper");
});
