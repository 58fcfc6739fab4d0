/**
 * A repository with a fault, its tests and a test patch, for gradings with real git and shells in folders of this machine. Its tests
 * are files that a small runner of its own runs, in the words of pytest.
 */
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { artifactNames } from "@rolldeck/contracts/api/artifacts";
import type { Ending } from "@rolldeck/contracts/endings";
import { noResources } from "@rolldeck/contracts/ports/sandbox";
import type { FinishedRollout, NewEvidence } from "@rolldeck/contracts/ports/task";
import { TestReport } from "@rolldeck/contracts/test-report";
import { afterAll } from "vitest";
import { collectPatch } from "../src/swe/collect.ts";
import { gradeSwe } from "../src/swe/grade.ts";
import { SweOptions } from "../src/swe/options.ts";
import type { SweRow } from "../src/swe/row.ts";
import { copyFolder, setUpRepository } from "../src/swe/set-up.ts";
import { localSandbox } from "./local-sandbox.ts";

const { signal } = new AbortController();
const files = {
  "add.sh": "add() { echo $(($1 - $2)); }\n",
  "tests/test_keep.sh": "true\n",
  "src/_pytest/add.sh": "add() { echo $(($1 - $2)); }\n",
  // A runner of the repository's own, and what it loads.
  "sympy/testing/runtests.sh":
    'check() { if ( . "./$1" ); then echo "PASSED $1"; else echo "FAILED $1 - no"; bad=1; fi; }\n',
  "ci/run.sh":
    '. ./add.sh; . ./sympy/testing/runtests.sh; bad=0; for t in tests/test_*.sh; do check "$t"; done; exit $bad\n',
  "tests/test_add.sh": '[ "$(add 2 0)" = 2 ]\n',
};
export const testPatch = `diff --git a/tests/test_add.sh b/tests/test_add.sh
--- a/tests/test_add.sh
+++ b/tests/test_add.sh
@@ -1 +1 @@
-[ "$(add 2 0)" = 2 ]
+[ "$(add 2 1)" = 3 ]
`;
export const runner = `. ./add.sh || exit 4; bad=0; for t in tests/test_*.sh; do if ( . "./$t" ); then echo "PASSED $t"; else echo "FAILED $t - no"; bad=1; fi; done; (exit $bad)`;
/** What an agent does that solves it. */
export const fix = "echo 'add() { echo $(($1 + $2)); }' > add.sh";

export interface GradingCase {
  readonly row?: Partial<SweRow>;
  readonly options?: Partial<SweOptions>;
  readonly ending?: Ending;
  /** Commands of the rollout's calls. */
  readonly calls?: readonly string[];
}

export class GradedRepository {
  readonly home = mkdtempSync(join(tmpdir(), "swe-grade-"));
  readonly #image = join(this.home, "image");
  readonly #baseCommit: string;
  #made = 0;

  /** Its folders go when the tests of the file are over. */
  constructor() {
    for (const [path, content] of Object.entries(files)) {
      mkdirSync(dirname(join(this.#image, path)), { recursive: true });
      writeFileSync(join(this.#image, path), content);
    }
    const commit = "git config user.name a; git config user.email a@example.org; git add -A; git commit -qm base";
    this.#sh(this.#image, `git init -q; ${commit}; mkdir tests/more`);
    this.#baseCommit = this.#sh(this.#image, "git rev-parse HEAD").trim();
    afterAll(() => {
      rmSync(copyFolder(this.home), { recursive: true, force: true });
      rmSync(this.home, { recursive: true, force: true });
    });
  }

  /** The row's script, with another test command. */
  evalScript(command = runner): string {
    return `#!/bin/bash
git checkout -q ${this.#baseCommit} -- tests/test_add.sh
git apply /var/tmp/rolldeck-test.patch || { echo '>>>>> Tests Errored'; exit 2; }
echo '>>>>> Start Test Output'
${command}
echo '>>>>> End Test Output'
git checkout -q ${this.#baseCommit} -- tests/test_add.sh
`;
  }

  /** What is collected of an agent that runs this script, from set-up to evidence. */
  async collected(script: string): Promise<Map<string, Uint8Array>> {
    const folder = this.#fresh();
    const sandbox = localSandbox(folder);
    await setUpRepository(this.#row, sandbox, { history: "past", timeoutMs: 60_000 }, signal);
    this.#sh(folder, script);
    return new Map((await collectPatch(sandbox, 60_000, signal)).map(({ name, content }) => [name, content]));
  }

  /** Grades what an agent left. */
  async grade(left: ReadonlyMap<string, Uint8Array>, { row, options, ending, calls = [] }: GradingCase = {}) {
    const kept = new Map<string, string>();
    const opened: string[] = [];
    const sandboxes = {
      open: async () => {
        const folder = this.#fresh();
        opened.push(folder);
        return localSandbox(folder);
      },
      agent: () => Promise.reject(new Error("the agent's sandbox is not graded in")),
      collected: async (name: string) => left.get(name) ?? null,
      keep: async ({ name, content }: NewEvidence) => void kept.set(name, Buffer.from(content).toString("utf8")),
    };
    const request = { row: { ...this.#row, ...row }, spec: place, options: SweOptions.parse({ ...options }) } as const;
    const graded = await gradeSwe(request, rolloutOf(ending, calls), { signal, judge: null, sandboxes }).then(
      (verdict) => ({ verdict, error: null }),
      (error: unknown) => ({ verdict: null, error }),
    );
    const text = kept.get(artifactNames.tests);
    const report = text === undefined ? null : TestReport.parse(JSON.parse(text));
    return { ...graded, report, kept, opened };
  }

  get #row(): SweRow {
    return {
      ...{ kind: "swe-bench", instanceId: "made__up-1", repo: "made/up", version: "1", baseCommit: this.#baseCommit },
      ...{ statement: "add subtracts", hintsText: null, image: "none", patch: null, testPatch },
      ...{ failToPass: ["tests/test_add.sh"], passToPass: ["tests/test_keep.sh"], evalType: "pass_and_fail" },
      ...{ evalScript: this.evalScript(), logParser: "pytest", expected: null, commitContent: null },
    };
  }

  /** A sandbox's folder with the repository as the image has it. */
  #fresh(): string {
    const folder = join(this.home, `sandbox-${this.#made++}`);
    execFileSync("cp", ["-a", this.#image, folder]);
    return folder;
  }

  #sh(folder: string, script: string): string {
    const env = { PATH: process.env.PATH, HOME: this.home };
    return execFileSync("bash", ["-ec", script], { cwd: folder, encoding: "utf8", env });
  }
}

const place = {
  image: null,
  resources: noResources,
  network: { mode: "none" },
  workdir: null,
  environment: {},
  services: [],
} as const;

const rolloutOf = (ending: Ending = "finish_tool", calls: readonly string[]): FinishedRollout => ({
  ending,
  finalAnswer: null,
  turns: 1,
  toolCalls: calls.map((command) => ({ name: "bash", arguments: { command }, failed: false })),
});
