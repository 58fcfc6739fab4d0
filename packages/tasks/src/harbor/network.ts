/** What a task may reach. Invariant: an operator's word can only narrow it; where two lists meet, only hosts of both are left. */
import type { NetworkPolicy } from "@rolldeck/contracts/ports/sandbox";

export type TaskNetwork = NetworkPolicy;

const modes = { public: "public", "no-network": "none", allowlist: "allow-list" } as const;

/** Null where a table says nothing. */
export function readNetwork(table: {
  readonly network_mode?: keyof typeof modes | undefined;
  readonly allowed_hosts?: readonly string[] | undefined;
}): TaskNetwork | null {
  if (table.network_mode === undefined) return null;
  const mode = modes[table.network_mode];
  if (mode !== "allow-list") return { mode };
  const hosts = table.allowed_hosts ?? [];
  return hosts.length === 0 ? { mode: "none" } : { mode, hosts };
}

export function narrow(task: TaskNetwork, operator: TaskNetwork): TaskNetwork {
  if (task.mode === "none" || operator.mode === "none") return { mode: "none" };
  if (task.mode === "public") return operator;
  if (operator.mode === "public") return task;
  const hosts = task.hosts.filter((host) => operator.hosts.some((other) => covers(other, host)));
  const others = operator.hosts.filter(
    (host) => !hosts.includes(host) && task.hosts.some((other) => covers(other, host)),
  );
  const both = [...hosts, ...others];
  return both.length === 0 ? { mode: "none" } : { mode: "allow-list", hosts: both };
}

/** The first stands for every host that the second stands for. */
const covers = (wide: string, host: string): boolean =>
  wide === host || (wide.startsWith("*.") && host.replace(/^\*\./u, "").endsWith(wide.slice(1)));
