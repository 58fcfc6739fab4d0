/**
 * docker-compose.yaml of a task, the part of it that a rollout's sandbox can have: services with an image or a build, a command,
 * variables and a health check. Invariant: what would weaken a sandbox, or mean something else here, is refused with the reason;
 * keys that change nothing for a rollout are left out with a warning.
 */
import { InputError } from "@rolldeck/contracts/errors";
import type { Healthcheck } from "@rolldeck/contracts/ports/sandbox";
import { parse } from "yaml";
import type { z } from "zod";
import { type Check, File, keyTrouble, Service } from "./compose-tables.ts";
import { composeMemoryMb, composeMilliseconds, composeNumber } from "./compose-values.ts";
import { fillIn, missingVariables, type OperatorVariables } from "./operator-variables.ts";
import type { StringMap } from "./task-file.ts";

export interface ComposeBuild {
  /** Relative to the compose file's folder. */
  readonly context: string;
  readonly dockerfile: string;
}
export interface ComposeService {
  readonly name: string;
  readonly image: string | null;
  readonly build: ComposeBuild | null;
  readonly command: readonly string[] | null;
  readonly environment: StringMap;
  readonly healthcheck: Healthcheck | null;
  readonly cpus: number | null;
  readonly memoryMb: number | null;
}
export interface ComposeFile {
  /** The agent's; null where the file does not speak of it. */
  readonly main: ComposeService | null;
  /** The others, those that another one waits for first. */
  readonly services: readonly ComposeService[];
}

/** @param where names the file in messages @throws InputError at `dataset`, one issue per key */
export function parseComposeFile(
  text: string,
  where: string,
  variables: OperatorVariables,
): { readonly file: ComposeFile; readonly warnings: string[] } {
  const troubles: string[] = [];
  const warnings: string[] = [];
  const refuse = (message: string): void => void troubles.push(message);
  const warn = (message: string): void => void warnings.push(`${where}: ${message}`);
  const raw = File.safeParse(readYaml(text, where));
  if (!raw.success) {
    throw refusal(
      where,
      raw.error.issues.map(({ path, message }) => `${path.join(".")}: ${message}`),
    );
  }
  for (const key of Object.keys(raw.data)) {
    if (key === "volumes" || key === "networks")
      refuse(`${key}: a rollout's services share no volumes or other networks`);
    else if (!["services", "version", "name"].includes(key)) warn(`${key} has no effect`);
  }
  const services = new Map<string, Service>();
  for (const [name, table] of Object.entries(raw.data.services)) {
    const service = checkService(name, table, refuse, warn);
    if (service !== null) services.set(name, service);
  }
  const read = inOrder(services, refuse).map((name) => readService(name, services.get(name), variables, refuse));
  if (troubles.length > 0) throw refusal(where, troubles);
  const main = read.find(({ name }) => name === "main") ?? null;
  return { file: { main, services: read.filter((service) => service !== main) }, warnings };
}

function checkService(
  name: string,
  table: Readonly<Record<string, unknown>>,
  refuse: (message: string) => void,
  warn: (message: string) => void,
): Service | null {
  const path = `services.${name}`;
  if (!/^[a-z0-9](?:[a-z0-9_.-]{0,60}[a-z0-9])?$/u.test(name)) refuse(`${path}: is no name of a host`);
  for (const [key, value] of Object.entries(table)) {
    const trouble = keyTrouble(key, value);
    if (trouble === "no effect") warn(`${path}.${key} has no effect`);
    else if (trouble !== null) refuse(`${path}.${key}: ${trouble.refused}`);
  }
  const parsed = Service.safeParse(table);
  if (parsed.success) return parsed.data;
  for (const issue of parsed.error.issues) refuse(`${[path, ...issue.path].join(".")}: ${issue.message}`);
  return null;
}

const refusal = (where: string, messages: readonly string[]): InputError =>
  new InputError(messages.map((message) => ({ path: "dataset", message: `${where}: ${message}` })));

function readYaml(text: string, where: string): unknown {
  try {
    return parse(text, { maxAliasCount: 50, merge: true, logLevel: "error" });
  } catch (cause) {
    throw refusal(where, [`is no YAML: ${cause instanceof Error ? cause.message.split("\n")[0] : "?"}`]);
  }
}

/** Those that are waited for come first. */
function inOrder(services: ReadonlyMap<string, Service>, refuse: (message: string) => void): string[] {
  const done: string[] = [];
  const open = new Set<string>();
  const visit = (name: string): void => {
    if (done.includes(name)) return;
    if (open.has(name)) {
      refuse(`services.${name}.depends_on: services wait for each other`);
      return;
    }
    open.add(name);
    for (const { name: other, condition } of services.get(name)?.depends_on ?? []) {
      if (!services.has(other)) refuse(`services.${name}.depends_on: there is no service ${other}`);
      else if (!["service_started", "service_healthy"].includes(condition)) {
        refuse(`services.${name}.depends_on.${other}: ${condition} is not waited for here`);
      } else visit(other);
    }
    open.delete(name);
    done.push(name);
  };
  for (const name of services.keys()) visit(name);
  return done;
}

function readService(
  name: string,
  service: Service | undefined,
  variables: OperatorVariables,
  refuse: (message: string) => void,
): ComposeService {
  const path = `services.${name}`;
  const filled = (text: string, key: string): string => {
    for (const missing of missingVariables(text, variables)) {
      refuse(`${path}.${key}: reads ${missing}, which is not among ROLLDECK_TASK_ENV`);
    }
    return fillIn(text, variables);
  };
  if (service?.build && (isSet(service.build, "args") || isSet(service.build, "target"))) {
    refuse(`${path}.build: args and target are not passed on; write them into the Dockerfile`);
  }
  const environment = Object.entries(service?.environment ?? {}).map(([key, value]): [string, string] => [
    key,
    filled(value ?? `\${${key}}`, `environment.${key}`),
  ]);
  const limits = service?.deploy?.resources?.limits;
  const memory = service?.mem_limit ?? limits?.memory;
  return {
    name,
    image: service?.image === undefined ? null : filled(service.image, "image"),
    build: service?.build ? { context: service.build.context, dockerfile: service.build.dockerfile } : null,
    command: words(service?.command ?? null, (text) => filled(text, "command")),
    environment: Object.fromEntries(environment),
    healthcheck: readCheck(service?.healthcheck, path, refuse),
    cpus: composeNumber(service?.cpus ?? limits?.cpus, `${path}.cpus`, refuse),
    memoryMb: memory === undefined ? null : composeMemoryMb(filled(memory, "memory"), `${path}.memory`, refuse),
  };
}

const isSet = (build: object, key: string): boolean => {
  const value = Object.entries(build).find(([name]) => name === key)?.[1];
  return value !== undefined && value !== null;
};

/** A text is split as a shell would, without its expansions: entry points look at the first word. */
function words(command: string | readonly string[] | null, filled: (text: string) => string): string[] | null {
  if (command === null) return null;
  if (typeof command !== "string") return command.map(filled);
  const found = filled(command).match(/(?:[^\s"'\\]|\\.|"(?:[^"\\]|\\.)*"|'[^']*')+/gsu) ?? [];
  return found.map((word) => word.replaceAll(/\\(.)|"((?:[^"\\]|\\.)*)"|'([^']*)'/gsu, unquoted));
}

const unquoted = (_: string, escaped?: string, double?: string, single?: string): string =>
  escaped ?? single ?? (double ?? "").replaceAll(/\\(["\\$`])/gu, "$1");

function readCheck(
  check: z.output<typeof Check> | undefined,
  path: string,
  refuse: (message: string) => void,
): Healthcheck | null {
  if (check === undefined || check.disable === true || check.test === undefined) return null;
  const test = typeof check.test === "string" ? ["CMD-SHELL", check.test] : check.test;
  const [kind, ...rest] = test;
  if (kind === "NONE") return null;
  if (kind !== "CMD" && kind !== "CMD-SHELL") refuse(`${path}.healthcheck.test: begins with CMD or CMD-SHELL`);
  const duration = (text: string | undefined, otherwise: number, key: string): number => {
    const read = text === undefined ? otherwise : composeMilliseconds(text);
    if (read === null) refuse(`${path}.healthcheck.${key}: is no duration such as 5s`);
    return read ?? otherwise;
  };
  return {
    command: kind === "CMD" ? rest : ["/bin/sh", "-c", rest.join(" ")],
    intervalMs: duration(check.interval, 5_000, "interval"),
    timeoutMs: duration(check.timeout, 30_000, "timeout"),
    startMs: duration(check.start_period, 0, "start_period"),
    retries: check.retries ?? 3,
  };
}
