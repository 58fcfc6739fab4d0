/**
 * The operator's list of endpoints: a YAML or JSON file, read once at start. Messages name the place in the file and never a value:
 * it may be a key.
 */
import { readFile } from "node:fs/promises";
import { InputError, type InputIssue } from "@rolldeck/contracts/errors";
import { parse } from "yaml";
import { z } from "zod";
import { type Endpoint, EndpointFile } from "../openai/endpoint.ts";

const EndpointsFile = z.array(EndpointFile).max(1_000);

/**
 * @param file absolute path; null = no list
 * @param variable value of an environment variable that the list names
 * @throws InputError
 */
export async function readEndpoints(
  file: string | null,
  variable: (name: string) => string | undefined,
): Promise<readonly Endpoint[]> {
  if (file === null) return [];
  let text: string;
  try {
    text = await readFile(file, "utf8");
  } catch (cause) {
    const code = cause instanceof Error && "code" in cause ? String(cause.code) : "unknown";
    throw new InputError([{ path: "ROLLDECK_ENDPOINTS", message: `the file can't be read (${code})` }]);
  }
  return parseEndpoints(text, variable);
}

/** @throws InputError */
export function parseEndpoints(text: string, variable: (name: string) => string | undefined): readonly Endpoint[] {
  const parsed = EndpointsFile.safeParse(readText(text));
  if (!parsed.success) {
    throw new InputError(
      parsed.error.issues.map(({ path, message, code }) =>
        issueAt(path, code === "unrecognized_keys" ? "an unknown key" : message),
      ),
    );
  }
  const issues: InputIssue[] = [];
  const endpoints = parsed.data.map((endpoint, at) => withKeys(endpoint, at, variable, issues));
  for (const [at, { name }] of endpoints.entries()) {
    if (endpoints.findIndex((other) => other.name === name) < at)
      issues.push(issueAt([at, "name"], "is taken by an earlier one"));
  }
  if (issues.length > 0) throw new InputError(issues);
  return endpoints;
}

/** What of a list may be shown: no address and no key; named variables are not looked at. @throws InputError */
export function endpointNames(text: string): readonly { readonly name: string; readonly backend: string }[] {
  return parseEndpoints(text, () => "unseen").map(({ name, kind }) => ({ name, backend: kind }));
}

/** Whether a list names a judge; variables are not looked at. @throws InputError */
export const namesJudge = (text: string): boolean => parseEndpoints(text, () => "unseen").some(({ judge }) => judge);

function withKeys(
  { keyEnv, ...endpoint }: EndpointFile,
  at: number,
  variable: (name: string) => string | undefined,
  issues: InputIssue[],
): Endpoint {
  const keys = [...endpoint.keys];
  for (const name of [keyEnv].flat()) {
    const key = variable(name);
    if (key === undefined || key === "") issues.push(issueAt([at, "keyEnv"], `the variable ${name} is not set`));
    else keys.push(key);
  }
  const trains = endpoint.kind === "gpu-worker" || endpoint.kind === "tinker";
  if (trains && endpoint.urls.length > 1) issues.push(issueAt([at, "urls"], "a model lives on one server: give one"));
  if (trains && keys.length > 1) issues.push(issueAt([at, "keys"], "give one"));
  if (endpoint.judge && endpoint.kind !== "openai-chat")
    issues.push(issueAt([at, "judge"], "a judge is of kind openai-chat"));
  if (endpoint.judge && endpoint.model === null)
    issues.push(issueAt([at, "model"], "a judge needs the name of its model"));
  return { ...endpoint, keys };
}

function readText(text: string): unknown {
  try {
    // Aliases could make a small file explode.
    return parse(text, { maxAliasCount: 0, logLevel: "error" });
  } catch {
    // The parser's message quotes the line.
    throw new InputError([{ path: "ROLLDECK_ENDPOINTS", message: "the file is neither YAML nor JSON" }]);
  }
}

const issueAt = (path: readonly PropertyKey[], message: string): InputIssue => ({
  path: path.reduce<string>(
    (text, part) => text + (typeof part === "number" ? `[${part}]` : `.${String(part)}`),
    "endpoints",
  ),
  message,
});
