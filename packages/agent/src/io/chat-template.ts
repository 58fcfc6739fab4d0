/**
 * A Jinja chat template, rendered as Python's `transformers` renders it: blocks trimmed, `raise_exception`, `tojson`, and the
 * Python meaning of strip, str, len and == (python-values.ts). Invariant: rendering depends on its variables alone; no clock,
 * so a prompt is the same on every day and on every machine.
 */
import { Environment, Interpreter, parse, tokenize } from "@huggingface/jinja";
import { BoundaryError } from "@rolldeck/contracts/errors";
import * as python from "./python-values.ts";

/** What `strftime_now` gives: a prompt that changed with the day could neither be compared nor resumed. */
const templateDate = { year: 2026, month: 1, day: 1, weekday: 4 };
const months = "January February March April May June July August September October November December".split(" ");
const weekdays = "Sunday Monday Tuesday Wednesday Thursday Friday Saturday".split(" ");
const two = (value: number): string => String(value).padStart(2, "0");

function strftime(format: unknown): string {
  const { year, month, day, weekday } = templateDate;
  const monthName = months[month - 1] ?? "";
  const dayName = weekdays[weekday] ?? "";
  const parts: Readonly<Record<string, string>> = {
    Y: String(year),
    y: two(year % 100),
    m: two(month),
    d: two(day),
    B: monthName,
    b: monthName.slice(0, 3),
    A: dayName,
    a: dayName.slice(0, 3),
    H: "00",
    M: "00",
    S: "00",
    "%": "%",
  };
  return String(format).replace(/%(.)/g, (whole, letter: string) => parts[letter] ?? whole);
}

/** Functions that the rewritten template calls; the names can't be written in a template. */
const functions = {
  "python strip": (value: unknown, chars?: unknown) => python.strip(value, chars, "both"),
  "python lstrip": (value: unknown, chars?: unknown) => python.strip(value, chars, "left"),
  "python rstrip": (value: unknown, chars?: unknown) => python.strip(value, chars, "right"),
  "python split": (value: unknown, ...given: unknown[]) => {
    const [separator, most] = argumentsNamed(given, ["sep", "maxsplit"]);
    return python.split(value, separator, most);
  },
  "python str": python.str,
  "python concat": (one: unknown, other: unknown) => python.str(one) + python.str(other),
  "python equal": python.equal,
  "python unequal": (one: unknown, other: unknown) => !python.equal(one, other),
  "python length": python.length,
  "python selectattr": (items: unknown, ...given: unknown[]) => python.selectByAttribute(items, given, true),
  "python rejectattr": (items: unknown, ...given: unknown[]) => python.selectByAttribute(items, given, false),
  "python tojson": (value: unknown, ...options: unknown[]) => python.toJson(value, jsonStyle(options)),
};

/** The engine puts arguments that were given by name into a map at the end. */
function argumentsNamed(given: readonly unknown[], names: readonly string[]): unknown[] {
  const last = given.at(-1);
  const named = last instanceof Map ? last : new Map<string, unknown>();
  const positional = last instanceof Map ? given.slice(0, -1) : given;
  return names.map((name, at) => {
    const value = named.get(name) ?? positional[at];
    return typeof value === "object" && value !== null && "value" in value ? value.value : value;
  });
}

function jsonStyle(given: readonly unknown[]): python.JsonStyle {
  const [ensureAscii, indent, separators, sortKeys] = argumentsNamed(given, [
    "ensure_ascii",
    "indent",
    "separators",
    "sort_keys",
  ]);
  return {
    ensureAscii: ensureAscii === true,
    indent: typeof indent === "number" ? indent : null,
    separators: Array.isArray(separators) ? [python.str(separators[0]), python.str(separators[1])] : null,
    sortKeys: sortKeys === true,
  };
}

function globals(): Environment {
  const environment = new Environment();
  const raise = (message: unknown) => {
    throw new RangeError(python.str(message));
  };
  const range = (start: number, stop?: number, step = 1) => {
    const [from, to] = stop === undefined ? [0, start] : [start, stop];
    return Array.from({ length: Math.max(0, Math.ceil((to - from) / step)) }, (_, index) => from + index * step);
  };
  const constants = { true: true, True: true, false: false, False: false, none: null, None: null };
  const variables = { ...constants, ...functions, raise_exception: raise, range, strftime_now: strftime };
  for (const [name, value] of Object.entries(variables)) environment.set(name, value);
  return environment;
}

type Node = Record<string, unknown> & { readonly type: string };
const isNode = (value: unknown): value is Node =>
  typeof value === "object" && value !== null && "type" in value && typeof value.type === "string";
const call = (name: keyof typeof functions, args: readonly unknown[]): Node => ({
  type: "CallExpression",
  callee: { type: "Identifier", value: name },
  args,
});

const statements: ReadonlySet<string> = new Set(
  "Program If For Break Continue Set Macro Comment CallStatement FilterStatement StringLiteral".split(" "),
);
/** Filters by name and what stands in for them. */
const filters: Readonly<Record<string, keyof typeof functions>> = {
  tojson: "python tojson",
  trim: "python strip",
  string: "python str",
  length: "python length",
  count: "python length",
  selectattr: "python selectattr",
  rejectattr: "python rejectattr",
};
const methods: Readonly<Record<string, keyof typeof functions>> = {
  strip: "python strip",
  lstrip: "python lstrip",
  rstrip: "python rstrip",
  split: "python split",
};
const operators: Readonly<Record<string, keyof typeof functions>> = {
  "==": "python equal",
  "!=": "python unequal",
  "~": "python concat",
};

/** The same tree with Python's meaning where the engine has another; children first. */
function withPythonMeaning(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withPythonMeaning);
  if (value instanceof Map)
    return new Map([...value].map(([key, item]) => [withPythonMeaning(key), withPythonMeaning(item)]));
  if (!isNode(value)) return value;
  for (const [name, child] of Object.entries(value)) {
    const changed = withPythonMeaning(child);
    const printing = (name === "body" || name === "alternate" || name === "defaultBlock") && Array.isArray(changed);
    Reflect.set(value, name, printing ? changed.map(printed) : changed);
  }
  return replaced(value);
}

const printed = (node: unknown): unknown =>
  isNode(node) && !statements.has(node.type) ? call("python str", [node]) : node;

function replaced(node: Node): Node {
  if (node.type === "FilterExpression") {
    const filter = node.filter;
    if (!isNode(filter)) return node;
    const [name, args] = filter.type === "CallExpression" ? [nameOf(filter.callee), filter.args] : [nameOf(filter), []];
    const stand = name !== null && Object.hasOwn(filters, name) ? filters[name] : undefined;
    return stand === undefined ? node : call(stand, [node.operand, ...(Array.isArray(args) ? args : [])]);
  }
  if (node.type === "BinaryExpression") {
    const sign = isNode(node.operator) ? String(node.operator.value) : "";
    const stand = Object.hasOwn(operators, sign) ? operators[sign] : undefined;
    return stand === undefined ? node : call(stand, [node.left, node.right]);
  }
  return node.type === "CallExpression" ? replacedMethod(node) : node;
}

function replacedMethod(node: Node): Node {
  const { callee, args } = node;
  if (!isNode(callee) || callee.type !== "MemberExpression" || callee.computed === true) return node;
  const name = nameOf(callee.property);
  const stand = name !== null && Object.hasOwn(methods, name) ? methods[name] : undefined;
  return stand === undefined || !Array.isArray(args) ? node : call(stand, [callee.object, ...args]);
}

const nameOf = (node: unknown): string | null =>
  isNode(node) && node.type === "Identifier" && typeof node.value === "string" ? node.value : null;

export class ChatTemplate {
  readonly #program: ReturnType<typeof parse>;
  readonly #globals = globals();

  /** @throws SyntaxError when the source is no template */
  constructor(source: string) {
    this.#program = parse(tokenize(source, { lstrip_blocks: true, trim_blocks: true }));
    withPythonMeaning(this.#program);
  }

  /** @throws BoundaryError("infrastructure", "chat_template") when the template refuses the conversation or can't be run */
  render(variables: Readonly<Record<string, unknown>>): string {
    try {
      const environment = new Environment(this.#globals);
      for (const [name, value] of Object.entries(variables)) environment.set(name, value);
      return String(new Interpreter(environment).run(this.#program).value);
    } catch (cause) {
      const words = cause instanceof Error ? cause.message : String(cause);
      throw new BoundaryError("infrastructure", "chat_template", `the chat template refused a conversation: ${words}`, {
        cause,
      });
    }
  }
}
