/**
 * A row of a software-engineering data set as it is published, in the shapes of SWE-bench (lists of tests as JSON text), SWE-Gym
 * (as lists), SWE-smith (a patch that makes the bug), R2E-Gym (an expected outcome instead of lists) and SkyRL-Agent (any of them
 * in the column `instance`). Invariant: what a row says is kept as it says it; what it can't be graded without is refused by the
 * name of its field, when the data set is opened.
 */
import { z } from "zod";
import { logParserNamed, logParsers } from "./logs/log-parsers.ts";
import { cutReason, withoutColours } from "./logs/r2e-log.ts";
import { isGymRepository, testCommandOf } from "./test-commands.ts";

export const sweKinds = ["swe-bench", "swe-gym", "swe-smith", "r2e-gym"] as const;
export type SweKind = (typeof sweKinds)[number];

/** A list, or a list as JSON text. */
const TestNames = z.unknown().transform((given, refusal): string[] => {
  const list = z.array(z.string()).safeParse(typeof given === "string" ? parsedJson(given) : given);
  return list.success ? list.data : refuse(refusal, "is neither a list of names nor one as JSON text");
});
const Text = z.string().nullish();

const Fields = z.looseObject({
  instance_id: Text,
  repo: Text,
  repo_name: Text,
  base_commit: Text,
  commit_hash: Text,
  version: z.union([z.string(), z.number().transform(String)]).nullish(),
  patch: Text,
  test_patch: Text,
  hints_text: Text,
  image: Text,
  image_name: Text,
  docker_image: Text,
  eval_script: Text,
  log_parser: Text,
  eval_type: z.enum(["pass_and_fail", "fail_only"]).nullish(),
  FAIL_TO_PASS: TestNames.nullish(),
  PASS_TO_PASS: TestNames.nullish(),
  expected_output_json: Text,
  parsed_commit_content: Text,
  data_source: Text,
});
type Fields = z.output<typeof Fields>;

/** Columns that are read of a Parquet file, besides the statement's. */
export const sweColumns: readonly string[] = [...Object.keys(Fields.shape), "instance"];

export interface SweRow {
  readonly kind: SweKind;
  readonly instanceId: string;
  readonly repo: string;
  readonly version: string | null;
  /** Null where the image's own state is the beginning. */
  readonly baseCommit: string | null;
  readonly statement: string;
  readonly hintsText: string | null;
  readonly image: string | null;
  /** What solves it; of SWE-smith, what made the bug. */
  readonly patch: string | null;
  readonly testPatch: string;
  readonly failToPass: readonly string[];
  readonly passToPass: readonly string[];
  readonly evalType: "pass_and_fail" | "fail_only";
  readonly evalScript: string | null;
  readonly logParser: string | null;
  /** Test → word of the log. */
  readonly expected: Readonly<Record<string, string>> | null;
  /** R2E-Gym's description of the fix, JSON. */
  readonly commitContent: string | null;
}

/** @param statement column that holds the problem's statement */
export const sweRow = (statement: string) =>
  z.preprocess(
    unwrapped,
    Fields.transform((fields, refusal): SweRow => {
      const given = fields[statement];
      if (typeof given !== "string" || given.trim() === "") return refuse(refusal, "is missing or empty", statement);
      const row = toRow(fields, given);
      const trouble = troubleOf(row, fields);
      return trouble === null ? row : refuse(refusal, trouble.message, trouble.field);
    }),
  );

/** SkyRL-Agent's rows hold the data set's own in a column, as an object or as JSON text. */
function unwrapped(row: unknown): unknown {
  if (typeof row !== "object" || row === null || !("instance" in row)) return row;
  const { instance, ...outer } = row;
  const inner: unknown = typeof instance === "string" ? parsedJson(instance) : instance;
  if (typeof inner !== "object" || inner === null) return row;
  const source = "data_source" in outer ? { data_source: outer.data_source } : {};
  return { ...source, ...inner };
}

function toRow(fields: Fields, given: string): SweRow {
  const kind = kindOf(fields);
  const r2e = kind === "r2e-gym";
  return {
    kind,
    instanceId: fields.instance_id ?? fields.docker_image ?? "",
    repo: fields.repo ?? fields.repo_name ?? "",
    version: fields.version ?? null,
    // R2E-Gym's names the fix, SWE-smith's its own branch: their images begin where the agent does.
    baseCommit: r2e || kind === "swe-smith" ? null : (fields.base_commit ?? null),
    statement: r2e ? insideTags(given) : given,
    hintsText: fields.hints_text ?? null,
    // SkyRL-Agent names R2E-Gym's instances by their images.
    image: fields.image ?? fields.docker_image ?? fields.image_name ?? (r2e ? (fields.instance_id ?? null) : null),
    patch: fields.patch ?? null,
    testPatch: fields.test_patch ?? "",
    failToPass: fields.FAIL_TO_PASS ?? [],
    passToPass: fields.PASS_TO_PASS ?? [],
    evalType: fields.eval_type ?? "pass_and_fail",
    evalScript: fields.eval_script ?? null,
    logParser: fields.log_parser ?? null,
    expected: expectedOf(fields.expected_output_json),
    commitContent: r2e ? (fields.parsed_commit_content ?? null) : null,
  };
}

function kindOf({ expected_output_json, image_name, data_source, repo, instance_id }: Fields): SweKind {
  if (typeof expected_output_json === "string" || data_source === "r2e-gym") return "r2e-gym";
  if (data_source === "swe-smith" || image_name?.includes("swesmith") || repo?.startsWith("swesmith/"))
    return "swe-smith";
  if (data_source === "swe-gym" || (data_source == null && isGymRepository(repo ?? ""))) return "swe-gym";
  return /\.[0-9a-f]{8}\.[a-z_]+__[a-z0-9]+$/u.test(instance_id ?? "") ? "swe-smith" : "swe-bench";
}

interface Trouble {
  readonly field: string;
  readonly message: string;
}

function troubleOf(row: SweRow, fields: Fields): Trouble | null {
  if (row.instanceId === "") return { field: "instance_id", message: "is missing" };
  if (row.kind === "r2e-gym") return r2eTrouble(row);
  if (row.failToPass.length === 0)
    return { field: "FAIL_TO_PASS", message: "is missing or empty: nothing tells a solution" };
  if (row.kind === "swe-smith") return smithTrouble(row);
  return benchTrouble(row, fields);
}

const r2eTrouble = ({ expected, image }: SweRow): Trouble | null => {
  if (expected === null) return { field: "expected_output_json", message: "is not a JSON object of tests and words" };
  return image === null ? { field: "docker_image", message: "is missing" } : null;
};

const smithTrouble = ({ patch, image }: SweRow): Trouble | null => {
  if (patch === null) return { field: "patch", message: "is missing: it makes the bug" };
  return image === null ? { field: "image_name", message: "is missing" } : null;
};

function benchTrouble(
  { repo, version, baseCommit, evalScript, logParser, testPatch }: SweRow,
  fields: Fields,
): Trouble | null {
  if (baseCommit === null || !/^[0-9a-f]{7,64}$/u.test(baseCommit)) {
    return { field: "base_commit", message: "is missing or no commit's name" };
  }
  const command = testCommandOf(repo, version);
  if (evalScript === null && command === null) {
    const of = repo === "" ? "the row names no repo" : `no test command is known for ${repo.slice(0, 80)}`;
    return { field: "eval_script", message: `is missing, and ${of}: give eval_script and log_parser` };
  }
  if (evalScript === null && testPatch === "")
    return { field: "test_patch", message: "is missing: it names the tests" };
  if (logParser !== null && logParserNamed(logParser) === null) {
    const known = Object.keys(logParsers).join(", ");
    return {
      field: "log_parser",
      message: `${JSON.stringify(logParser.slice(0, 60))} is not here; known are ${known}`,
    };
  }
  const needed = logParser === null && command === null;
  return needed && fields.eval_script != null
    ? { field: "log_parser", message: "is missing: it goes with eval_script" }
    : null;
}

/** R2E-Gym's statements stand in tags. */
const insideTags = (text: string): string => /\[ISSUE\]([\s\S]*)\[\/ISSUE\]/u.exec(text)?.[1] ?? text;

const Expected = z.record(z.string(), z.string());

function expectedOf(text: string | null | undefined): SweRow["expected"] {
  const parsed = text == null ? null : Expected.safeParse(parsedJson(text));
  if (!parsed?.success) return null;
  const plain = Object.entries(parsed.data).map(([name, word]) => [withoutColours(name), word] as const);
  const sorted = plain.sort(([a], [b]) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
  return Object.fromEntries(sorted.map(([name, word]) => [cutReason(name), word]));
}

function parsedJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

function refuse(refusal: z.RefinementCtx, message: string, field?: string): never {
  refusal.addIssue({ code: "custom", message, ...(field === undefined ? {} : { path: [field] }) });
  return z.NEVER;
}
