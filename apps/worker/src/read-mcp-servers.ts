/** Reads the operator's list of MCP servers. */
import { readFile } from "node:fs/promises";
import { InputError } from "@rolldeck/contracts/errors";
import { type McpServerList, parseMcpServers } from "@rolldeck/contracts/mcp-servers";

/** @param path absolute, or null where there is no list. @throws InputError that says what is wrong with it */
export async function readMcpServers(path: string | null): Promise<McpServerList> {
  if (path === null) return {};
  const text = await readFile(path, "utf8").catch((error: NodeJS.ErrnoException) => {
    const message = `${path} can't be read (${error.code ?? error.message})`;
    throw new InputError([{ path: "ROLLDECK_MCP_SERVERS", message }]);
  });
  return parseMcpServers(text, path);
}
