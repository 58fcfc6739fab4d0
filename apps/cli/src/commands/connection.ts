/**
 * Which server a command talks to, and as whom: `--url`/`ROLLDECK_URL` and `ROLLDECK_TOKEN`, else the server of the data folder
 * with its owner token (a 0600 file, so only the person who runs the server can read it).
 */
import { readFileSync } from "node:fs";
import path from "node:path";
import { Rolldeck } from "@rolldeck/client/rolldeck";
import type { Command } from "commander";
import { chooseDataFolder } from "../start/data-folder.ts";
import { readServerFile } from "../start/server-file.ts";
import { CommandFailure } from "./command-failure.ts";

export interface ConnectionFlags {
  readonly url?: string;
  readonly dataDir?: string;
}

/** Adds the flags that name the server. */
export const withServer = (command: Command): Command =>
  command
    .option("--url <url>", "server address (ROLLDECK_URL; default: the server of the data folder)")
    .option("--data-dir <folder>", "data folder of the server");

/** Adds the flags of a command that asks the server and prints what it said. */
export const withConnection = (command: Command): Command => withServer(command).option("--json", "print JSON");

export interface Connection {
  readonly url: string;
  readonly token: string;
  readonly rolldeck: Rolldeck;
}

/** The folder `npm start` would use with the same flags and variables. One that is named is neither made nor changed. */
export function dataFolderOf(flags: ConnectionFlags): string {
  const asked = flags.dataDir ?? process.env.ROLLDECK_DATA_DIR;
  if (asked !== undefined) return path.resolve(asked);
  return chooseDataFolder({
    asked,
    root: process.env.ROLLDECK_ROOT ?? process.cwd(),
    xdgDataHome: process.env.XDG_DATA_HOME,
    needsOthers: process.env.ROLLDECK_DATABASE_URL === undefined && process.getuid?.() === 0,
  }).path;
}

function ownerToken(dataFolder: string): string {
  const file = path.join(dataFolder, "owner-token");
  try {
    return readFileSync(file, "utf8").trim();
  } catch (cause) {
    throw new CommandFailure(
      `no owner token at ${file}: start the server once with \`npm start\`, or set ROLLDECK_TOKEN`,
      { cause },
    );
  }
}

/** @throws CommandFailure when there is no server to talk to. */
export function connect(flags: ConnectionFlags): Connection {
  const given = flags.url ?? process.env.ROLLDECK_URL;
  const dataFolder = dataFolderOf(flags);
  const url = given ?? readServerFile(dataFolder)?.url;
  if (url === undefined) {
    throw new CommandFailure(
      `no server is running with its data in ${dataFolder}: start it with \`npm start\`, or name one with --url and ROLLDECK_TOKEN`,
    );
  }
  const token = process.env.ROLLDECK_TOKEN ?? ownerToken(dataFolder);
  return { url, token, rolldeck: new Rolldeck({ url, token }) };
}
