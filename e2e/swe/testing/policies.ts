/**
 * What the four scripted policies do with an instance, turn by turn: one solves it as upstream did, one hands in a change that mends
 * nothing, one asks the same for ever, one tampers with the tests. Each is a list of turns, so that the place in a conversation alone
 * says what comes next: a rollout that is continued elsewhere goes on as it would have.
 */
import { z } from "zod";
import { type PatchEdit, patchEdits } from "./patch-edits.ts";

/** What a policy knows of an instance: the fields of its row. */
export const PolicyRow = z.object({
  instance_id: z.string(),
  problem_statement: z.string(),
  patch: z.string(),
  test_patch: z.string(),
  eval_script: z.string(),
});
export type PolicyRow = z.infer<typeof PolicyRow>;

export interface ScriptedCall {
  readonly name: string;
  readonly arguments: Readonly<Record<string, unknown>>;
}
export interface ScriptedTurn {
  readonly says: string;
  readonly call: ScriptedCall;
}
/** Turns of a policy; past the last, the last again. */
export type PolicyScript = (row: PolicyRow, tools: ReadonlySet<string>) => readonly ScriptedTurn[];

const repository = "/testbed";

export const policies = {
  solver: (row, tools) => {
    const edits = patchEdits(row.patch);
    const [first] = edits;
    if (first === undefined) throw new Error(`${row.instance_id} has no edits`);
    return [
      turn("I look at the repository first.", shell(tools, `cd ${repository} && git log --oneline | head -3 && ls`)),
      ...(tools.has("search") ? [turn("Where is this handled?", search(first))] : []),
      turn("I look at the code around it.", editor("view", first, viewRange(first))),
      ...edits.map((edit) => turn("This is what has to change.", replace(edit))),
      turn("Now the tests.", shell(tools, `cd ${repository} && ( ${testCommand(row)} ) 2>&1 | tail -n 5`)),
      turn("What did I change?", shell(tools, "git diff --stat")),
      end(tools, "I changed the code so that what was reported works."),
    ];
  },
  wrongPatch: (row, tools) => {
    const [edit] = patchEdits(row.patch);
    if (edit === undefined) throw new Error(`${row.instance_id} has no edits`);
    const path = `${repository}/${edit.file}`;
    const comment = { command: "insert", path, insert_line: 0, new_str: "# Checked: this is handled below.\n" };
    return [
      turn("I look at the file.", editor("view", edit, { view_range: [1, 20] })),
      turn("A note is enough.", { name: "str_replace_editor", arguments: comment }),
      end(tools, "Done, I think."),
    ];
  },
  looper: (_row, tools) => [turn("Let me look.", shell(tools, `ls ${repository}`))],
  testDeleter: (row, tools) => {
    const files = testFiles(row).map((file) => `${repository}/${file}`);
    const plugin = [
      "import pytest",
      "",
      "@pytest.hookimpl(hookwrapper=True)",
      "def pytest_runtest_makereport(item, call):",
      "    outcome = yield",
      "    outcome.get_result().outcome = 'passed'",
      "",
    ].join("\n");
    const path = `${repository}/conftest.py`;
    return [
      turn("The tests are in the way.", shell(tools, `rm -f ${files.join(" ")} && ls`)),
      turn("And all of them pass from now on.", {
        name: "str_replace_editor",
        arguments: { command: "create", path, file_text: plugin },
      }),
      turn("Is it all there?", shell(tools, `cd ${repository} && git status --short | head`)),
      end(tools, "All tests pass."),
    ];
  },
} satisfies Record<string, PolicyScript>;
export type PolicyName = keyof typeof policies;
export const policyNames: readonly PolicyName[] = ["solver", "wrongPatch", "looper", "testDeleter"];

const turn = (says: string, call: ScriptedCall): ScriptedTurn => ({ says, call });

/** Agents of both styles are served: the tools that a request offers say which it is. */
const shell = (tools: ReadonlySet<string>, command: string): ScriptedCall => ({
  name: tools.has("bash") ? "bash" : "execute_bash",
  arguments: { command },
});
function end(tools: ReadonlySet<string>, message: string): ScriptedTurn {
  const call = tools.has("submit")
    ? { name: "submit", arguments: { message } }
    : { name: "finish", arguments: { answer: message } };
  return turn("I am done.", call);
}

const editor = (command: string, { file }: PatchEdit, more: Readonly<Record<string, unknown>>): ScriptedCall => ({
  name: "str_replace_editor",
  arguments: { command, path: `${repository}/${file}`, ...more },
});
const viewRange = ({ line, before }: PatchEdit) => ({ view_range: [line, line + before.split("\n").length - 1] });
const replace = (edit: PatchEdit): ScriptedCall =>
  editor("str_replace", edit, { old_str: edit.before, new_str: edit.after });

/** By the name of the function or class that the first change is in, else of the file. */
function search({ within, file }: PatchEdit): ScriptedCall {
  const term = /(?:def|class) (\w+)/.exec(within)?.[1] ?? file.split("/").at(-1)?.replace(/\.py$/, "") ?? file;
  return { name: "search", arguments: { search_terms: [term] } };
}

/** The line of the script that runs the tests. */
function testCommand({ eval_script, instance_id }: PolicyRow): string {
  const command = /^\( (.+) \) 2>&1$/m.exec(eval_script)?.[1];
  if (command === undefined) throw new Error(`the script of ${instance_id} runs no tests`);
  return command;
}
const testFiles = ({ test_patch }: PolicyRow): string[] =>
  [...test_patch.matchAll(/^diff --git a\/(\S+) b\//gm)].map(([, file]) => file ?? "");
