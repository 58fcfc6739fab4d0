/**
 * The operator's list of endpoints: a YAML or JSON file, read once at start. Messages name the place in the file and never a value:
 * it may be a key.
 */
import { InputError, type InputIssue } from "@rolldeck/contracts/errors";
import { z } from "zod";
import { type Endpoint, EndpointFile } from "../openai/endpoint.ts";
import { issueAt, parseListed, readListedFile, takenNames } from "./listed-file.ts";

const variableName = "ROLLDECK_ENDPOINTS";
const root = "endpoints";
const schema = z.array(EndpointFile).max(1_000);

/**
 * @param file absolute path; null = no list
 * @param variable value of an environment variable that the list names
 * @throws InputError
 */
export async function readEndpoints(
  file: string | null,
  variable: (name: string) => string | undefined,
): Promise<readonly Endpoint[]> {
  return file === null ? [] : parseEndpoints(await readListedFile(variableName, file), variable);
}

/** @throws InputError */
export function parseEndpoints(text: string, variable: (name: string) => string | undefined): readonly Endpoint[] {
  const listed = parseListed(text, { variable: variableName, root, schema });
  const issues: InputIssue[] = [];
  const endpoints = listed.map((endpoint, at) => withKeys(endpoint, at, variable, issues));
  issues.push(...takenNames(root, endpoints));
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
    if (key === undefined || key === "") issues.push(issueAt(root, [at, "keyEnv"], `the variable ${name} is not set`));
    else keys.push(key);
  }
  const trains = endpoint.kind === "gpu-worker" || endpoint.kind === "tinker";
  if (trains && endpoint.urls.length > 1)
    issues.push(issueAt(root, [at, "urls"], "a model lives on one server: give one"));
  if (trains && keys.length > 1) issues.push(issueAt(root, [at, "keys"], "give one"));
  if (endpoint.judge && endpoint.kind !== "openai-chat")
    issues.push(issueAt(root, [at, "judge"], "a judge is of kind openai-chat"));
  if (endpoint.judge && endpoint.model === null)
    issues.push(issueAt(root, [at, "model"], "a judge needs the name of its model"));
  return { ...endpoint, keys };
}
