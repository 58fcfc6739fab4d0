/** A language model that answers a verifier's questions, behind one of the operator's chat endpoints. */
import { BoundaryError } from "@rolldeck/contracts/errors";
import type { Judge } from "@rolldeck/contracts/ports/task";
import { z } from "zod";
import type { Wait } from "../resilient/resilient-calls.ts";
import { ChatCalls } from "./chat-calls.ts";
import { chatMessages } from "./chat-messages.ts";
import type { ChatText } from "./chat-text.ts";
import { type Endpoint, versionedUrl } from "./endpoint.ts";
import { endpointCalls, endpointSecrets, endpointTargets } from "./endpoint-target.ts";

export interface JudgeOptions {
  /** Kind openai-chat. Its `model` names the judge. */
  readonly endpoint: Endpoint;
  /** Default 1024. */
  readonly maxTokens?: number;
  readonly onWait?: (wait: Wait) => void;
}
export interface OpenedJudge extends Judge {
  close(): Promise<void>;
}

/** Asked at temperature 0. @throws RangeError for an endpoint that names no model, or of another kind */
export function createJudge({ endpoint, maxTokens = 1024, onWait }: JudgeOptions): OpenedJudge {
  const { model } = endpoint;
  if (endpoint.kind !== "openai-chat")
    throw new RangeError(`endpoint ${endpoint.name}: a judge is of kind openai-chat`);
  if (model === null) throw new RangeError(`endpoint ${endpoint.name}: a judge needs the name of its model`);
  const targets = endpointTargets(endpoint, versionedUrl);
  const chat = new ChatCalls({ endpoint, calls: endpointCalls(endpoint, targets), secrets: endpointSecrets(endpoint) });
  // Each question may go to another address and key: judges have no prefix to keep warm, and limits by key.
  let asked = 0;
  const ask: Judge["ask"] = async (messages, signal, onTokens) => {
    const body = {
      model,
      messages: chatMessages(messages, endpoint),
      [endpoint.maxTokensField]: maxTokens,
      temperature: 0,
    };
    asked += 1;
    const call = {
      affinityKey: `judge ${asked}`,
      body,
      toolNames: new Set<string>(),
      chatText: contentOnly,
      signal,
      onWait,
    };
    try {
      const { text, promptTokens, completionTokens } = await chat.complete(call);
      onTokens?.((promptTokens ?? 0) + (completionTokens ?? 0));
      if (text.trim() !== "") return text;
    } catch (cause) {
      if (signal.aborted || !(cause instanceof BoundaryError)) throw cause;
      throw new BoundaryError("verifier", `judge_${cause.code}`, `the judge did not answer: ${cause.message}`, {
        cause,
      });
    }
    throw new BoundaryError("verifier", "judge_silent", "the judge answered without a word");
  };
  return {
    ask,
    close: async () => {
      await Promise.all([chat.close(), ...targets.map(({ server }) => server.close())]);
    },
  };
}

const Said = z.object({ content: z.string().nullish() });
/** The judge's words, without its thinking and without calls. */
const contentOnly: ChatText = {
  whole: (message) => Said.parse(message).content ?? "",
  stream: () => {
    let text = "";
    return {
      push: (delta) => {
        text += Said.parse(delta).content ?? "";
      },
      text: () => text,
    };
  },
};
