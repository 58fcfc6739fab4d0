/** A scripted rollout from its beginning to its end, with what it left. */
import type { Tokenizer } from "@rolldeck/contracts/ports/tokenizer";
import { runRollout } from "../src/core/run-rollout.ts";
import { rolloutSpec, scriptedRollout } from "./scripted-rollout.ts";

type Script = Parameters<typeof scriptedRollout>[0];

export async function playScript(
  tokenizer: Tokenizer,
  policy: Script["policy"],
  agent: Parameters<typeof rolloutSpec>[1] = {},
  overrides: Parameters<typeof rolloutSpec>[2] = {},
  tools?: Script["tools"],
) {
  const ports = scriptedRollout({ tokenizer, policy, tools });
  const spec = rolloutSpec(tokenizer, agent, overrides);
  const end = await runRollout(spec, null, ports, new AbortController().signal);
  const trajectory = ports.stored();
  const { turns, segments } = trajectory;
  const transcript = tokenizer.decode(segments.flatMap((segment) => [...segment.tokens]));
  return { end, ports, trajectory, turns, segments, transcript };
}
