/**
 * The four policies behind a model server that samples tokens: for runs that train. Where the prompt ends says which turn it is; who
 * speaks is known by the first turn of the conversation, and four that begin on an instance are the four policies in turn.
 */
import type { Policy } from "@rolldeck/backends/testing/scripted-worker";
import { type PolicyName, type PolicyRow, policies, policyNames } from "./policies.ts";

const turnMark = "<|assistant|>";
const tools: ReadonlySet<string> = new Set(["bash", "str_replace_editor", "submit"]);

/** Writes calls in the format hermes. */
export function scriptedPolicy(rows: readonly PolicyRow[]): Policy {
  const begun = new Map<string, number>();
  const next = (row: PolicyRow): PolicyName => {
    const place = begun.get(row.instance_id) ?? 0;
    begun.set(row.instance_id, place + 1);
    return policyNames[place % policyNames.length] ?? "solver";
  };
  return ({ prompt }) => {
    const row = rows.find(({ problem_statement }) => prompt.includes(problem_statement.trim()));
    if (row === undefined) throw new Error("the prompt names no instance of the data set");
    const place = prompt.split(turnMark).length - 2;
    const first = prompt.split(turnMark)[1] ?? "";
    const speaks = (name: PolicyName) => first.startsWith(policies[name](row, tools)[0]?.says ?? "?");
    const name = place === 0 ? next(row) : policyNames.find(speaks);
    if (name === undefined) throw new Error("the conversation was begun by none of the policies");
    const turns = policies[name](row, tools);
    const turn = turns[Math.min(place, turns.length - 1)];
    if (turn === undefined) throw new Error("the policy has no turns");
    return `${turn.says}\n<tool_call>\n${JSON.stringify(turn.call)}\n</tool_call>`;
  };
}
