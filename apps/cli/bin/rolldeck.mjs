#!/usr/bin/env node
/** The `rolldeck` command. */
import path from "node:path";
import { pathToFileURL } from "node:url";
import { ensureInstalled, root } from "./ensure-installed.mjs";

ensureInstalled();
process.env.ROLLDECK_ROOT ??= root;
const { buildServers } = await import("./build-servers.mjs");
// Only `start` runs the servers.
await buildServers(process.argv[2] === "start" ? ["cli", "api", "worker"] : ["cli"]);
const { main } = await import(pathToFileURL(path.join(root, "apps/cli/dist/main.mjs")).href);
await main(process.argv.slice(2));
