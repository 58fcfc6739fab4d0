#!/usr/bin/env node
/** The `rolldeck` command. */
import path from "node:path";
import { pathToFileURL } from "node:url";
import { ensureInstalled, root } from "./ensure-installed.mjs";

ensureInstalled();
process.env.ROLLDECK_ROOT ??= root;
const { buildServers } = await import("./build-servers.mjs");
await buildServers(["cli", "api", "worker"]);
const { main } = await import(pathToFileURL(path.join(root, "apps/cli/dist/main.mjs")).href);
await main(process.argv.slice(2));
