/** The interpreter with SkyRL's own packages, and what is asked of it. */
import { execFile } from "node:child_process";
import { promisify } from "node:util";

/** @throws when ROLLDECK_SKYRL_PYTHON names none: the suite `skyrl-server` prepares one and sets it */
export function skyrlPython(): string {
  const python = process.env.ROLLDECK_SKYRL_PYTHON;
  if (!python) throw new Error("set ROLLDECK_SKYRL_PYTHON; npm test -- skyrl-server does so by itself");
  return python;
}

const countSteps = `
import json, sqlite3, sys
rows = sqlite3.connect(sys.argv[1]).execute(
    "select request_data from futures where lower(request_type) = 'optim_step' and lower(status) = 'completed'")
print(sum(json.loads(data)["adam_params"]["learning_rate"] > 0 for (data,) in rows))`;

/** Optimizer steps above rate 0 that the server has made, over all its starts. @param database its SQLite file */
export async function optimizerSteps(database: string): Promise<number> {
  const { stdout } = await promisify(execFile)(skyrlPython(), ["-c", countSteps, database]);
  return Number(stdout);
}
