/** Who asks. Loopback alone is nobody: a principal comes from a session cookie, the owner token or an API token. */
import type { TokenScope } from "@rolldeck/contracts/api/system";

export interface Principal {
  /** Key of idempotency rows and logs: `owner` or `token:<tokenId>`; never a secret. */
  readonly id: string;
  readonly name: string;
  readonly kind: "owner" | "token";
  readonly scopes: readonly TokenScope[];
}

export const mayWrite = (principal: Principal): boolean => principal.scopes.includes("write");

/** For people and the run's log: who did it, never a secret. */
export const principalWords = ({ kind, name, id }: Principal): string =>
  kind === "owner" ? "the owner" : `${name} (${id})`;
