/** The process's log: JSON lines on standard output. Nothing secret is ever handed to it: no headers, no queries, no bodies. */
import { type Logger, pino } from "pino";
import { withoutCredentials } from "./without-credentials.ts";

export type Log = Pick<Logger, "info" | "warn" | "error" | "debug">;

export const createLog = (level: string): Logger => pino({ name: "api", level, base: undefined });

/** An error as facts for the log, with its causes; addresses with a password in them are not repeated. */
export function errorFacts(error: unknown): { error: string; stack?: string; cause?: unknown } {
  if (!(error instanceof Error)) return { error: withoutCredentials(String(error)) };
  return {
    error: withoutCredentials(`${error.name}: ${error.message}`),
    stack: error.stack && withoutCredentials(error.stack),
    ...(error.cause === undefined ? {} : { cause: errorFacts(error.cause) }),
  };
}
