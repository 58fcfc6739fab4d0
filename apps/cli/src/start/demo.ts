/** On an empty database the quickstart run is launched through the same API that everyone uses. */
import { readFileSync } from "node:fs";
import path from "node:path";
import { Rolldeck } from "@rolldeck/client/rolldeck";
import { presets } from "@rolldeck/contracts/presets";
import type { Pool } from "pg";
import { say } from "./console-lines.ts";

/** Launches it once; a database that ever had a run is left alone. */
export async function launchDemo(pool: Pool, url: string, dataFolder: string): Promise<void> {
  const { rows } = await pool.query("select 1 from runs limit 1");
  if (rows.length > 0) return;
  const token = readFileSync(path.join(dataFolder, "owner-token"), "utf8").trim();
  const rolldeck = new Rolldeck({ url, token });
  const { runId } = await rolldeck.launchRun(presets.quickstart.config, { idempotencyKey: "quickstart-demo" });
  say("rolldeck", `launched the quickstart run ${runId}: ${url}/runs/${runId}`);
}
