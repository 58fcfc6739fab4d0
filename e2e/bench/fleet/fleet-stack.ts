/** `npm start` with the fleet and nothing of its own to compute, over a database that outlives it: its supervisor can be killed. */
import { readFileSync } from "node:fs";
import path from "node:path";
import { readDeployment } from "@rolldeck/db/reads/live-sandboxes";
import type { TestDatabase } from "@rolldeck/db/testing/postgres";
import { fleetId } from "@rolldeck/fleet/fleet-id";
import { type StartedStack, startStack } from "../../stack/started-stack.ts";

const root = path.resolve(import.meta.dirname, "../../..");

export interface FleetStackOptions {
  readonly database: TestDatabase;
  readonly dataFolder: string;
  readonly progress: (line: string) => void;
}

export const startFleetStack = ({ database, dataFolder, progress }: FleetStackOptions): Promise<StartedStack> =>
  startStack({
    root,
    args: ["--no-demo", "--only", "api,worker,fleet", "--database-url", database.url],
    dataFolder,
    onLine: (line) => progress(`npm start: ${line}`),
  });

/** What its containers are labelled with. */
export async function labelOf({ database, dataFolder }: FleetStackOptions): Promise<string> {
  const secret = readFileSync(path.join(dataFolder, "secrets/fleet-secret"), "utf8").trim();
  return fleetId(await readDeployment(database.pool), secret);
}
