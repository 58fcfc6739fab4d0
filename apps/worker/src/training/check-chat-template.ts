/** Before a run's model is made: does its chat template fit a rollout that only adds to its tokens? */
import { checkTemplate } from "@rolldeck/agent/io/template-check";
import { InputError } from "@rolldeck/contracts/errors";
import { noteOnRun } from "@rolldeck/db/runs/note-on-run";
import type { ClaimedPrepare } from "@rolldeck/db/training/claim-prepare";
import { dialectNamed } from "../dialect-named.ts";
import type { WorkerContext } from "../worker-context.ts";

/**
 * What is odd becomes notes of the run, once. A run that trains is refused on an error; one that only evaluates is told.
 * @throws InputError when the run must not train
 */
export async function checkChatTemplate(context: WorkerContext, claimed: ClaimedPrepare): Promise<void> {
  const { config, runId } = claimed;
  // The model was made before: what was found then is in the log.
  if (claimed.servingVersion !== null) return;
  const tokenizer = await context.tokenizers.load(config.model);
  const { findings } = checkTemplate(tokenizer, dialectNamed(config.agent.dialect), config.model.thinking);
  const fatal = config.kind === "train" ? findings.filter(({ level }) => level === "error") : [];
  const told = findings.filter((finding) => !fatal.includes(finding));
  const notes = told.map(({ message }) => ({ level: "warning" as const, message: `Chat template: ${message}` }));
  if (notes.length > 0 && claimed.failures === 0) await noteOnRun(context.pool, runId, notes);
  if (fatal.length === 0) return;
  const found = fatal.map(({ message }) => message).join("; ");
  const message = `this chat template can't be trained on, name one that only adds to the prompt: ${found}`;
  throw new InputError([{ path: "model.chatTemplate", message }]);
}
