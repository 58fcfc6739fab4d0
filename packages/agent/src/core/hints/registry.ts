/** Every hint a run may switch on. Add one: a file here, a name in contracts/run-config, a line below. */
import type { HintName } from "@rolldeck/contracts/agent-config";
import { contextNearlyFull } from "./context-nearly-full.ts";
import { dontStopEarly } from "./dont-stop-early.ts";
import { failedEdit } from "./failed-edit.ts";
import type { Hint, HintFacts } from "./hint.ts";
import { malformedCall } from "./malformed-call.ts";
import { repeatedFailure } from "./repeated-failure.ts";
import { stepsLeft } from "./steps-left.ts";

/** In the order in which they are said. */
export const hints = {
  "malformed-call": malformedCall,
  "failed-edit": failedEdit,
  "repeated-failure": repeatedFailure,
  "dont-stop-early": dontStopEarly,
  "context-nearly-full": contextNearlyFull,
  "steps-left": stepsLeft,
} satisfies Record<HintName, Hint>;

/** What the switched-on hints say, in the registry's order. @param names of other hints say nothing: launch checks them */
export function hintTexts(names: readonly string[], facts: HintFacts): string[] {
  return Object.entries(hints).flatMap(([name, hint]) => {
    const text = names.includes(name) ? hint(facts) : null;
    return text === null ? [] : [text];
  });
}
