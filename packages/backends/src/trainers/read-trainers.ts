/**
 * The operator's list of trainers that runs may be launched with: where each is started, with what command, and where its engines answer.
 * A config names an entry and holds no command; what differs from run to run reaches the command as environment variables only.
 */
import { InputError, type InputIssue } from "@rolldeck/contracts/errors";
import { launchedBackends } from "@rolldeck/contracts/trainer-jobs";
import { z } from "zod";
import { issueAt, parseListed, readListedFile, takenNames } from "../endpoints/listed-file.ts";
import { bareEndpoint, type Endpoint, EndpointFile } from "../openai/endpoint.ts";

const HttpUrl = z.url({ protocol: /^https?$/ });
const VariableName = z.string().regex(/^[A-Z_][A-Z0-9_]*$/i);

const TrainerFile = z.strictObject({
  name: EndpointFile.shape.name,
  backend: z.enum(launchedBackends),
  /** The cluster's dashboard; `tokenEnv`: variable that holds the cluster's token. */
  ray: z.strictObject({ url: HttpUrl, tokenEnv: VariableName.nullable().default(null) }),
  /** A line for a shell on the cluster. */
  entrypoint: z.string().min(1).max(32_000),
  /** As Ray has it: `working_dir`, `pip`, `env_vars`, … */
  runtimeEnv: z.looseObject({ env_vars: z.record(VariableName, z.string()).optional() }).default({}),
  /** Set aside for the command itself; what it starts asks for its own. */
  resources: z
    .strictObject({
      cpus: z.number().min(0).optional(),
      gpus: z.number().min(0).optional(),
      memoryMb: z.int().min(1).optional(),
    })
    .default({}),
  /** Where this server is as seen from the cluster; `tokenEnv`: variable that holds an API token for it. */
  rolldeck: z.strictObject({ url: HttpUrl, tokenEnv: VariableName }),
  /** Where the engines answer /v1/completions, as seen from here. */
  engines: z.strictObject({
    urls: EndpointFile.shape.urls,
    keyEnv: VariableName.nullable().default(null),
    model: EndpointFile.shape.model,
  }),
});
type TrainerFile = z.infer<typeof TrainerFile>;

/** A trainer with its keys at hand: they live here and in memory, and go to the cluster as the job's environment. */
export interface ListedTrainer extends Pick<TrainerFile, "name" | "backend" | "entrypoint" | "resources"> {
  readonly ray: { readonly url: string; readonly token: string | undefined };
  readonly runtimeEnv: Readonly<Record<string, unknown>>;
  readonly variables: Readonly<Record<string, string>>;
  readonly rolldeck: { readonly url: string; readonly token: string };
  readonly engines: Endpoint;
}

const variableName = "ROLLDECK_TRAINERS";
const root = "trainers";
const schema = z.array(TrainerFile).max(1_000);

/** @param file absolute path; null = no list @param variable value of an environment variable that the list names @throws InputError */
export async function readTrainers(
  file: string | null,
  variable: (name: string) => string | undefined,
): Promise<readonly ListedTrainer[]> {
  return file === null ? [] : parseTrainers(await readListedFile(variableName, file), variable);
}

/** @throws InputError */
export function parseTrainers(text: string, variable: (name: string) => string | undefined): readonly ListedTrainer[] {
  const listed = parseListed(text, { variable: variableName, root, schema });
  const issues: InputIssue[] = takenNames(root, listed);
  const trainers = listed.map((trainer, at) => {
    const keyAt = (path: readonly string[], name: string | null): string | undefined => {
      if (name === null) return undefined;
      const value = variable(name);
      if (!value) issues.push(issueAt(root, [at, ...path], `the variable ${name} is not set`));
      return value;
    };
    return withKeys(trainer, keyAt);
  });
  if (issues.length > 0) throw new InputError(issues);
  return trainers;
}

/** What of a list may be shown: no address and no key; named variables are not looked at. @throws InputError */
export const trainerNames = (text: string): readonly { readonly name: string; readonly backend: string }[] =>
  parseTrainers(text, () => "unseen").map(({ name, backend }) => ({ name, backend }));

function withKeys(
  trainer: TrainerFile,
  keyAt: (path: readonly string[], name: string | null) => string | undefined,
): ListedTrainer {
  const { name, backend, entrypoint, resources, ray, rolldeck, engines } = trainer;
  const { env_vars: variables = {}, ...runtimeEnv } = trainer.runtimeEnv;
  const key = keyAt(["engines", "keyEnv"], engines.keyEnv);
  const [url = ""] = engines.urls;
  return {
    ...{ name, backend, entrypoint, resources, runtimeEnv, variables },
    ray: { url: ray.url, token: keyAt(["ray", "tokenEnv"], ray.tokenEnv) },
    rolldeck: { url: rolldeck.url, token: keyAt(["rolldeck", "tokenEnv"], rolldeck.tokenEnv) ?? "" },
    engines: {
      ...bareEndpoint("openai-completions", url),
      ...{ name, urls: engines.urls, model: engines.model, keys: key === undefined ? [] : [key] },
    },
  };
}
