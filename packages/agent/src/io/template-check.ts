/**
 * Does a model's chat template give, turn by turn, the tokens that it gives for the whole conversation? A rollout only ever adds to
 * its tokens; where the template would rewrite what came before (thinking taken out, tools moved), or starts and ends turns in
 * another way than a sampler does, the run must know before it trains. Also finds text that does not survive the tokenizer.
 */
import type { Dialect } from "@rolldeck/contracts/ports/dialect";
import type { ChatMessage, Tokenizer } from "@rolldeck/contracts/ports/tokenizer";
import { renderAccepted } from "../core/render-accepted.ts";
import { firstPrompt, observationTokens } from "../core/render-conversation.ts";
import { describesTools } from "../core/template-tools.ts";
import { type Probe, probeTool, templateProbes } from "./template-probes.ts";

export const findingKinds = [
  "refused",
  "generation-prompt",
  "end-token",
  "prefix-break",
  "strips-thinking",
  "thinking-switch",
  "special-token",
  "drift",
] as const;
export interface TemplateFinding {
  readonly kind: (typeof findingKinds)[number];
  /** error: no run may train on it. */
  readonly level: "error" | "warning";
  /** One sentence for the run's page, with an example. */
  readonly message: string;
}
export interface TemplateReport {
  /** No finding is an error. */
  readonly ok: boolean;
  readonly findings: readonly TemplateFinding[];
}

/**
 * @param dialect how the run's model writes calls
 * @param thinking what the run's config tells the template; null = nothing
 */
export function checkTemplate(tokenizer: Tokenizer, dialect: Dialect, thinking: boolean | null = null): TemplateReport {
  const subject: Subject = { tokenizer, dialect, byTemplate: describesTools(tokenizer, dialect) };
  const turns = turnFindings(subject);
  // Where turns can't be told apart nothing else can be judged.
  if (turns.length > 0) return { ok: false, findings: turns };
  const findings = [
    ...templateProbes(dialect, subject.byTemplate).flatMap((probe) => probeFindings(subject, probe)),
    ...switchFindings(tokenizer, thinking),
    ...specialFindings(tokenizer),
    ...driftFindings(tokenizer),
  ];
  // The first example of each kind and level says it.
  const once = findings.filter(
    ({ kind, level }, at) => findings.findIndex((other) => other.kind === kind && other.level === level) === at,
  );
  return { ok: once.every(({ level }) => level !== "error"), findings: once };
}

interface Subject {
  readonly tokenizer: Tokenizer;
  readonly dialect: Dialect;
  /** The template describes tools and writes calls. */
  readonly byTemplate: boolean;
}

/** An answer must begin where the generation prompt ends, and end with a token at which sampling stops. */
function turnFindings({ tokenizer }: Subject): TemplateFinding[] {
  const question: ChatMessage = { role: "user", content: "x" };
  const render = (answer: string, more: readonly ChatMessage[]) =>
    attempt(() =>
      tokenizer.render([question, { role: "assistant", content: answer }, ...more], { generationPrompt: false }),
    );
  const prompt = attempt(() => tokenizer.render([question], { generationPrompt: true }));
  const inside = render("answer", [question]);
  const other = render("y", [question]);
  const last = render("answer", []);
  if (prompt === null || inside === null || other === null || last === null) return [];
  const findings: TemplateFinding[] = [];
  const answerAt = firstDifference(inside, other);
  if (answerAt > prompt.length && startsWith(inside, prompt)) {
    const missing = tokenizer.decode(inside.slice(prompt.length, answerAt));
    const message = `the prompt does not begin the answer: the template writes ${quote(missing)} between them`;
    findings.push({ kind: "generation-prompt", level: "error", message });
  }
  const end = last.slice(-2).findLast((token) => tokenizer.decode([token], { skipSpecial: true }) === "");
  if (last.some((token, at) => at >= answerAt && tokenizer.stopTokens.includes(token))) return findings;
  if (end === undefined) {
    const message = "the template writes no end token after an answer, and a sampled turn always has one";
    return [...findings, { kind: "end-token", level: "error", message }];
  }
  const message = `an answer ends with ${quote(tokenizer.decode([end]))}, at which sampling does not stop: list it as eos_token_id in generation_config.json`;
  return [...findings, { kind: "end-token", level: "error", message }];
}

function probeFindings(subject: Subject, probe: Probe): TemplateFinding[] {
  let replayed: Replayed | null;
  try {
    replayed = replay(subject, probe.messages);
  } catch (error) {
    if (probe.refusal === null) return [];
    const message = `the template refuses a conversation (${probe.name}): ${error instanceof Error ? error.message : String(error)}`;
    return [{ kind: "refused", level: probe.refusal, message }];
  }
  if (replayed === null) return [];
  const { tokenizer } = subject;
  const { added, whole } = replayed;
  const at = firstDifference(added, whole);
  if (at === added.length && at === whole.length) return [];
  const shown = `${quote(excerpt(tokenizer, added, at))} was sent, ${quote(excerpt(tokenizer, whole, at))} is what the template writes later`;
  const thoughts = probe.messages.flatMap(({ reasoning }) => (reasoning === undefined ? [] : [reasoning]));
  const kept = tokenizer.decode(whole);
  if (thoughts.some((thought) => !kept.includes(thought)) && thoughts.length > 0) {
    const message = `the template takes earlier thinking out of the conversation (${probe.name}), a rollout keeps it: ${shown}`;
    return [{ kind: "strips-thinking", level: "warning", message }];
  }
  const message = `the template rewrites what came before (${probe.name}): ${shown}`;
  return [{ kind: "prefix-break", level: thoughts.length > 0 ? "warning" : "error", message }];
}

interface Replayed {
  /** As a rollout adds them, turn by turn. */
  readonly added: readonly number[];
  /** The same conversation rendered at once. */
  readonly whole: readonly number[];
}

/**
 * @returns null where the model is told not to think and the conversation has thoughts
 * @throws BoundaryError when the template refuses the conversation or a part of it
 */
function replay({ tokenizer, dialect, byTemplate }: Subject, messages: readonly ChatMessage[]): Replayed | null {
  const tools = byTemplate ? { tools: [probeTool] } : {};
  const render = (part: readonly ChatMessage[], generationPrompt: boolean) =>
    renderAccepted(part, (form) => tokenizer.render(form, { generationPrompt, ...tools }));
  const isAnswer = ({ role }: ChatMessage) => role === "assistant";
  const first = messages.findIndex(isAnswer);
  const opening = { messages: messages.slice(0, first), tools: [probeTool], dialect, describeTools: byTemplate };
  const added = [...firstPrompt(tokenizer, opening)];
  for (let at = first; at < messages.length; ) {
    const next = messages.findIndex((message, place) => place > at && isAnswer(message));
    const until = next === -1 ? messages.length : next;
    const answer = answerTokens(tokenizer, messages.slice(0, at + 1), render);
    if (answer === null) return null;
    added.push(...answer);
    added.push(...observationTokens(tokenizer, messages.slice(at + 1, until)));
    at = until;
  }
  return { added, whole: render(messages, true) };
}

/**
 * What a model that keeps to the template samples as the last answer of `messages`, its end token included. An answer without
 * thinking is taken from a longer conversation: some templates put an empty thought before the very last one.
 */
function answerTokens(
  tokenizer: Tokenizer,
  messages: readonly ChatMessage[],
  render: (part: readonly ChatMessage[], generationPrompt: boolean) => number[],
): number[] | null {
  const answer = messages.at(-1);
  const prompt = render(messages.slice(0, -1), true);
  const shown = answer?.reasoning === undefined ? [...messages, { role: "user" as const, content: "x" }] : messages;
  const whole = attempt(() => render(shown, false)) ?? render(messages, false);
  const end = whole.findIndex((token, at) => at >= prompt.length && tokenizer.stopTokens.includes(token));
  if (startsWith(whole, prompt)) return whole.slice(prompt.length, end === -1 ? undefined : end + 1);
  // The thought is shown, but not where the prompt lets it begin: the prompt has closed it already.
  if (answer?.reasoning !== undefined && tokenizer.decode(whole).includes(answer.reasoning)) return null;
  const [stop] = tokenizer.stopTokens;
  return [...tokenizer.encode(answer?.content ?? ""), ...(stop === undefined ? [] : [stop])];
}

/** A setting that changes nothing is never ignored in silence. */
function switchFindings(tokenizer: Tokenizer, thinking: boolean | null): TemplateFinding[] {
  if (thinking === null) return [];
  const messages: readonly ChatMessage[] = [
    { role: "user", content: "x" },
    { role: "assistant", content: "y", reasoning: "z" },
    { role: "user", content: "x" },
  ];
  const render = (on: boolean) => attempt(() => tokenizer.render(messages, { generationPrompt: true, thinking: on }));
  const [on, off] = [render(true), render(false)];
  // A refusal is another finding's matter.
  if (on === null || off === null || JSON.stringify(on) !== JSON.stringify(off)) return [];
  const message = "model.thinking is set, but the template has no switch for thinking: leave it null";
  return [{ kind: "thinking-switch", level: "error", message }];
}

/** Content that spells the tokens which open and close turns must not become them. */
function specialFindings(tokenizer: Tokenizer): TemplateFinding[] {
  const spelled = tokenizer.stopTokens.map((token) => tokenizer.decode([token])).join("");
  const tokens = attempt(() => tokenizer.render([{ role: "user", content: spelled }], { generationPrompt: false }));
  const plain = attempt(() => tokenizer.render([{ role: "user", content: "x" }], { generationPrompt: false }));
  if (tokens === null || plain === null) return [];
  const ends = (list: readonly number[]) => list.filter((token) => tokenizer.stopTokens.includes(token)).length;
  if (ends(tokens) === ends(plain)) return [];
  return [{ kind: "special-token", level: "error", message: `content that spells ${quote(spelled)} ends a turn` }];
}

const driftTexts = [
  "plain words",
  " leading",
  "trailing ",
  "\n\nlines\n",
  "cafe\u0301",
  "😀 你好",
  "UPPER lower",
  "x  y\t\tz",
];

/** Text that comes back changed reaches the model changed; tokens that were sampled are never read as text and encoded again. */
function driftFindings(tokenizer: Tokenizer): TemplateFinding[] {
  const changed = driftTexts.filter((text) => tokenizer.decode(tokenizer.encode(text)) !== text);
  const [example] = changed;
  if (example === undefined) return [];
  const back = tokenizer.decode(tokenizer.encode(example));
  const message = `the tokenizer changes ${changed.length} of ${driftTexts.length} texts: ${quote(example)} comes back as ${quote(back)}`;
  return [{ kind: "drift", level: "warning", message }];
}

function attempt<T>(make: () => T): T | null {
  try {
    return make();
  } catch {
    // What the template refuses is told by the probe that needs it.
    return null;
  }
}

/** The length of the shorter one where it begins the other. */
function firstDifference(one: readonly number[], other: readonly number[]): number {
  const length = Math.min(one.length, other.length);
  for (let at = 0; at < length; at++) if (one[at] !== other[at]) return at;
  return length;
}

const startsWith = (tokens: readonly number[], prefix: readonly number[]): boolean =>
  firstDifference(tokens, prefix) === prefix.length;

const excerpt = (tokenizer: Tokenizer, tokens: readonly number[], at: number): string =>
  tokenizer.decode(tokens.slice(Math.max(0, at - 4), at + 12));

const quote = (text: string): string => JSON.stringify(text.length > 120 ? `${text.slice(0, 120)}...` : text);
