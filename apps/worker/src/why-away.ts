/** Why a server did not answer, in words for people. */
const words: Readonly<Record<string, string>> = {
  ECONNREFUSED: "connection refused",
  ECONNRESET: "the connection was reset",
  EHOSTUNREACH: "no way to that host",
  ENETUNREACH: "no way to that network",
  ENOTFOUND: "no host of that name",
  EAI_AGAIN: "the host's name can't be looked up",
  ETIMEDOUT: "no answer in time",
  UND_ERR_CONNECT_TIMEOUT: "no answer in time",
  UND_ERR_HEADERS_TIMEOUT: "no answer in time",
  UND_ERR_SOCKET: "the connection was closed",
};
/** Causes of causes: adapters keep them. */
const maxDepth = 8;
const maxWords = 300;

/** @param error what an adapter threw, with its causes */
export function whyAway(error: unknown): string {
  let at: unknown = error;
  for (let depth = 0; depth < maxDepth && at instanceof Error; depth++) {
    if (at.name === "TimeoutError") return "no answer in time";
    const known = "code" in at && typeof at.code === "string" ? words[at.code] : undefined;
    if (known !== undefined) return known;
    at = at.cause;
  }
  return (error instanceof Error ? error.message : String(error)).slice(0, maxWords);
}
