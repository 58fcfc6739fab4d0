/**
 * What a deployment's containers are known by. Of its database and its secret together: a copy of the database that runs beside it, with
 * another data folder, neither sees its workers nor ends them.
 */
import { createHash } from "node:crypto";

/** @param deployment id that the database was given when it was made @returns fits a label and the name of a volume */
export function fleetId(deployment: string, secret: string): string {
  const mark = createHash("sha256").update(`rolldeck fleet id ${deployment} ${secret}`).digest("hex").slice(0, 12);
  return `${deployment}-${mark}`;
}
