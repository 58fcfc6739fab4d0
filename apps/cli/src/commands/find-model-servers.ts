/** Which Tinker servers of the operator's list answer, and what they serve, for `rolldeck doctor`. Opens no session and no model. */
import path from "node:path";
import { readEndpoints } from "@rolldeck/backends/endpoints/read-endpoints";
import type { Endpoint } from "@rolldeck/backends/openai/endpoint";
import { connectTinker } from "@rolldeck/backends/tinker/connect";
import { InputError } from "@rolldeck/contracts/errors";
import type { Finding } from "./finding.ts";

const answerMs = 5_000;

/** None where no list is named. */
export async function findModelServers(env: Readonly<Record<string, string | undefined>>): Promise<Finding[]> {
  const file = env.ROLLDECK_ENDPOINTS;
  if (file === undefined || file === "") return [];
  try {
    const endpoints = await readEndpoints(path.resolve(file), (name) => env[name]);
    return await Promise.all(endpoints.filter(({ kind }) => kind === "tinker").map(findOne));
  } catch (error) {
    if (!(error instanceof InputError)) throw error;
    const fix = "put the list that ROLLDECK_ENDPOINTS names right: docs/agents.md";
    return [{ what: "Model servers", state: "failed", detail: error.message, fix }];
  }
}

async function findOne({ name, urls, keys }: Endpoint): Promise<Finding> {
  const what = `Tinker server: ${name}`;
  // What they serve is asked of all kinds in the same way.
  const backend = connectTinker({ url: urls[0] ?? "", apiKey: keys[0] ?? null, dialect: "hosted" });
  try {
    const { models } = await backend.info(AbortSignal.timeout(answerMs));
    const served = models.map((model) => model.name.split("/").at(-1)).join(", ") || "nothing";
    return { what, state: "ok", detail: `serves ${served}`, fix: null };
  } catch (error) {
    const detail = error instanceof Error ? error.message : String(error);
    return { what, state: "warning", detail, fix: "start it, or put its address or key right in the list" };
  } finally {
    await backend.close();
  }
}
