/**
 * Training rows as one Parquet file: a column per field of contracts/batch-row, under the same names. Ids and spans are lists,
 * logprobs are float32 as they were stored, and missing is null, as in JSON.
 */
import type { BatchRow } from "@rolldeck/contracts/batch-row";
import { ByteWriter, ParquetWriter } from "hyparquet-writer";

type Element = ConstructorParameters<typeof ParquetWriter>[0]["schema"][number];
type Leaf = "INT32" | "INT64" | "FLOAT" | "DOUBLE" | "BOOLEAN" | "STRING";

const leaf = (name: string, type: Leaf, nullable: boolean): Element => ({
  name,
  repetition_type: nullable ? "OPTIONAL" : "REQUIRED",
  ...(type === "STRING" ? { type: "BYTE_ARRAY", converted_type: "UTF8" } : { type }),
});

/** Parquet's list of three levels; `element` is what it holds. */
const list = (name: string, nullable: boolean, ...element: Element[]): Element[] => [
  { name, repetition_type: nullable ? "OPTIONAL" : "REQUIRED", converted_type: "LIST", num_children: 1 },
  { name: "list", repetition_type: "REPEATED", num_children: 1 },
  ...element,
];

const columns: Readonly<Record<keyof BatchRow, Element[]>> = {
  runId: [leaf("runId", "STRING", false)],
  step: [leaf("step", "INT32", false)],
  row: [leaf("row", "INT32", false)],
  groupId: [leaf("groupId", "STRING", false)],
  task: [leaf("task", "STRING", false)],
  instanceId: [leaf("instanceId", "STRING", false)],
  sample: [leaf("sample", "INT32", false)],
  rolloutId: [leaf("rolloutId", "STRING", false)],
  attempt: [leaf("attempt", "INT32", false)],
  ending: [leaf("ending", "STRING", false)],
  reward: [leaf("reward", "DOUBLE", true)],
  advantage: [leaf("advantage", "DOUBLE", false)],
  scale: [leaf("scale", "DOUBLE", false)],
  sent: [leaf("sent", "BOOLEAN", false)],
  learnerVersion: [leaf("learnerVersion", "INT32", false)],
  // A token id may need all 32 bits, which INT32 has not: it is signed.
  tokens: list("tokens", false, leaf("element", "INT64", false)),
  mask: list(
    "mask",
    false,
    { name: "element", repetition_type: "REQUIRED", num_children: 2 },
    leaf("count", "INT32", false),
    leaf("reason", "STRING", true),
  ),
  samplerLogprobs: list("samplerLogprobs", false, leaf("element", "FLOAT", true)),
  trainerLogprobs: list("trainerLogprobs", true, leaf("element", "FLOAT", true)),
  refLogprobs: list("refLogprobs", true, leaf("element", "FLOAT", true)),
  tokenWeights: list("tokenWeights", true, leaf("element", "FLOAT", false)),
  policyVersions: list("policyVersions", false, leaf("element", "INT32", true)),
};

const names = Object.keys(columns) as (keyof BatchRow)[];

/** The whole file, a row group per page: what blocks other requests is one page long. */
export async function batchParquet(
  pages: AsyncIterable<readonly BatchRow[]> | Iterable<readonly BatchRow[]>,
): Promise<Uint8Array<ArrayBuffer>> {
  const bytes = new ByteWriter();
  const file = new ParquetWriter({
    writer: bytes,
    createdBy: "rolldeck",
    schema: [{ name: "root", num_children: names.length }, ...names.flatMap((name): Element[] => columns[name])],
  });
  for await (const rows of pages)
    await file.write({
      columnData: names.map((name) => ({
        name,
        data: rows.map((row) => (name === "tokens" ? row.tokens.map(BigInt) : row[name])),
      })),
    });
  await file.finish();
  return new Uint8Array(bytes.getBuffer());
}
