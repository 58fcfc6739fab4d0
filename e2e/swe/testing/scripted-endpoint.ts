/**
 * An OpenAI-compatible server (/v1/chat/completions over real HTTP) behind which four scripted policies work on the instances of a
 * data set. A conversation is known by its affinity key and its instance by the statement in it; the rollouts of an instance get the
 * policies in turn, in the order in which they first ask.
 */
import {
  type CompletionAsk,
  type CompletionServer,
  type SampledAnswer,
  startCompletionServer,
} from "@rolldeck/backends/testing/completion-server";
import { z } from "zod";
import { type PolicyName, type PolicyRow, policies, policyNames } from "./policies.ts";

/** The parts of a request that a policy goes by. */
const ChatRequest = z.object({
  messages: z.array(z.object({ role: z.string(), content: z.unknown() })),
  tools: z.array(z.object({ function: z.object({ name: z.string() }) })).default([]),
});

export interface ScriptedEndpoint {
  readonly server: CompletionServer;
  /** Which policy a conversation got; undefined for one that never asked. */
  policyOf(affinityKey: string): PolicyName | undefined;
  /** Conversations by policy. */
  counts(): Readonly<Record<PolicyName, number>>;
  close(): Promise<void>;
}

export async function startScriptedEndpoint(
  rows: readonly PolicyRow[],
  options: { readonly port?: number; readonly keys?: readonly string[] } = {},
): Promise<ScriptedEndpoint> {
  const given = new Map<string, PolicyName>();
  const asked = new Map<string, number>();
  const policyFor = (affinityKey: string, row: PolicyRow): PolicyName => {
    const known = given.get(affinityKey);
    if (known !== undefined) return known;
    const place = asked.get(row.instance_id) ?? 0;
    asked.set(row.instance_id, place + 1);
    const name = policyNames[place % policyNames.length] ?? "solver";
    given.set(affinityKey, name);
    return name;
  };
  const answer = (ask: CompletionAsk): SampledAnswer => {
    const { messages, tools } = ChatRequest.parse(ask.body);
    const said = messages.map(({ content }) => (typeof content === "string" ? content : JSON.stringify(content)));
    const row = rows.find(({ problem_statement }) => said.some((text) => text.includes(problem_statement.trim())));
    if (row === undefined) throw new Error("the conversation names no instance of the data set");
    const script = policies[policyFor(ask.affinityKey, row)];
    const turns = script(row, new Set(tools.map((tool) => tool.function.name)));
    const place = messages.filter(({ role }) => role === "assistant").length;
    const turn = turns[Math.min(place, turns.length - 1)];
    if (turn === undefined) throw new Error("the policy has no turns");
    const { name, arguments: args } = turn.call;
    return { content: turn.says, calls: [{ id: `call_${place}`, name, arguments: JSON.stringify(args) }] };
  };
  const server = await startCompletionServer({ ...options, answer });
  return {
    server,
    policyOf: (affinityKey) => given.get(affinityKey),
    counts: () => {
      const counts = { solver: 0, wrongPatch: 0, looper: 0, testDeleter: 0 };
      for (const name of given.values()) counts[name] += 1;
      return counts;
    },
    close: () => server.close(),
  };
}
