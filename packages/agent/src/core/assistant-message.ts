import type { ChatMessage } from "@rolldeck/contracts/ports/tokenizer";
import type { TurnRecord } from "@rolldeck/contracts/segments";
import { toolCallId } from "./answer-turn.ts";
import type { Rollout } from "./rollout.ts";
import { turnText } from "./turn-text.ts";

/** A sampled turn by its parts, for servers that take no tokens. Calls that were left out are left out here too. */
export function assistantMessage({ spec, history }: Rollout, turn: TurnRecord): ChatMessage {
  const tokens = history.read([history.rangeOf(turn.sampledSegment)]);
  const { content, reasoning } = spec.dialect.parse(turnText(spec.tokenizer, spec.dialect, tokens), spec.tools);
  const toolCalls = turn.calls.map(({ index, name, arguments: given }) => ({
    id: toolCallId(turn.turn, index),
    name,
    arguments: given,
  }));
  return {
    role: "assistant",
    content,
    ...(reasoning === "" ? {} : { reasoning }),
    ...(toolCalls.length === 0 ? {} : { toolCalls }),
  };
}
