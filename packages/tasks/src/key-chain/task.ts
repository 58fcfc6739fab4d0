/**
 * The quickstart task: find a key, follow it through the table with a tool until a digit comes, answer the digit. Small enough
 * for a policy of under a million parameters, and multi-turn: the answer can't be known without the lookups (guessing a
 * digit pays 10 %).
 */
import type { Task } from "@rolldeck/contracts/ports/task";
import type { ToolName } from "@rolldeck/tools/registry";
import { keyChainDemonstrations } from "./demonstrations.ts";
import { KeyChainState, keyChainInstance } from "./instances.ts";
import { keyChainMessages } from "./messages.ts";
import { verifyKeyChain } from "./verify.ts";

export const keyChain = {
  name: "key-chain",
  description: "Follow a chain of 2–4 keys with a lookup tool and answer the digit at its end.",
  sandbox: "none",
  tools: ["get", "finish"] satisfies ToolName[],
  // Four lookups and an answer fit twice over; 256 tokens hold eight turns of the format.
  defaults: { maxTurns: 8, maxContextTokens: 256 },
  size: () => null,
  instance: keyChainInstance,
  messages: (instance) => keyChainMessages(KeyChainState.parse(instance.state).start),
  verify: verifyKeyChain,
  demonstrations: keyChainDemonstrations,
} satisfies Task;
