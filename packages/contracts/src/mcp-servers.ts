/**
 * The operator's list of MCP servers: the only place that names a command or an address of one. Configs name a server of the
 * list; API and worker read the same file. Secrets stay in the environment: a value may be `{"env": "NAME"}`.
 */
import { z } from "zod";
import { InputError } from "./errors.ts";

const Value = z.union([z.string(), z.strictObject({ env: z.string().min(1), prefix: z.string().default("") })]);
export type McpValue = z.infer<typeof Value>;

const common = {
  /** Of one call, milliseconds; the run's own limit of a tool call holds beside it. */
  timeoutMs: z.int().min(1).max(3_600_000).default(60_000),
  /** Until it has answered for the first time. */
  startTimeoutMs: z.int().min(1).max(600_000).default(30_000),
  /** Each rollout gets a process (or session) of its own, for servers that keep something between calls. */
  perRollout: z.boolean().default(false),
  /** Its calls may run twice without harm. */
  idempotent: z.boolean().default(false),
};

const StdioServer = z.strictObject({
  command: z.string().min(1),
  args: z.array(z.string()).default([]),
  /** Beside PATH, HOME and the like; nothing else of the worker's environment is handed on. */
  env: z.record(z.string(), Value).default({}),
  cwd: z.string().nullable().default(null),
  /** Runs in the task's sandbox instead of beside the worker. */
  sandbox: z.boolean().default(false),
  ...common,
});
const HttpServer = z.strictObject({
  url: z.url({ protocol: /^https?$/ }),
  headers: z.record(z.string().regex(/^[A-Za-z0-9-]+$/), Value).default({}),
  ...common,
});

/** Told apart by which of the two it has, so that a mistake in one is not blamed on the other. */
export const McpServer = z.unknown().transform((value, context) => {
  const isHttp = typeof value === "object" && value !== null && "url" in value;
  const parsed = isHttp ? HttpServer.safeParse(value) : StdioServer.safeParse(value);
  if (parsed.success) return parsed.data;
  for (const issue of parsed.error.issues) context.addIssue({ ...issue, code: "custom" });
  return z.NEVER;
});
export type StdioMcpServer = z.infer<typeof StdioServer>;
export type HttpMcpServer = z.infer<typeof HttpServer>;
export type McpServer = StdioMcpServer | HttpMcpServer;

const Name = z.string().regex(/^[A-Za-z][A-Za-z0-9_-]{0,59}$/, "a name is letters, digits, dashes and underscores");
export const McpServerList = z.record(Name, McpServer);
export type McpServerList = z.infer<typeof McpServerList>;

export const runsInSandbox = (server: McpServer): server is StdioMcpServer => "sandbox" in server && server.sandbox;

/** Why no config can have this server; null when one can. */
export function mcpRefusal(server: McpServer): string | null {
  if (!runsInSandbox(server)) return null;
  const secret = Object.entries(server.env).find(([, value]) => typeof value !== "string");
  if (secret === undefined) return null;
  return `it runs inside the sandbox, where the agent could read the secret ${secret[0]}: give it plain values only`;
}

/**
 * The list as it stands in the operator's file.
 * @param path of the file, for messages
 * @throws InputError naming the server and the field; values are not repeated, because they may be secrets
 */
export function parseMcpServers(text: string, path: string): McpServerList {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new InputError([{ path: "ROLLDECK_MCP_SERVERS", message: `${path} is not JSON` }]);
  }
  const parsed = McpServerList.safeParse(value);
  if (parsed.success) return parsed.data;
  const issues = parsed.error.issues.slice(0, 20);
  throw new InputError(
    issues.map((issue) => ({
      path: `ROLLDECK_MCP_SERVERS: ${issue.path.join(".")}`,
      message: issue.message,
    })),
  );
}
