/** Which host opens a sandbox: one that has the image, then the least loaded. Pure. */
export interface HostView {
  readonly hostId: string;
  /** Connected, not draining, not cooling down after it said it is full. */
  readonly accepting: boolean;
  readonly mayStart: boolean;
  readonly maxSandboxes: number;
  readonly memoryMb: number;
  readonly sandboxes: number;
  readonly usedMemoryMb: number;
  readonly hasImage: boolean;
  /** Its runtime makes sandboxes from images; else from its own file system. */
  readonly takesImages: boolean;
}

export interface Needs {
  /** Of all its containers; 0 where none is asked for. */
  readonly memoryMb: number;
  /** The only host that has the image, or null. */
  readonly onlyHost: string | null;
  readonly withImage: boolean;
}

/** Null: none has room now. */
export function place(hosts: readonly HostView[], needs: Needs): string | null {
  let best: HostView | null = null;
  for (const host of hosts) {
    if (host.accepting && host.mayStart && hasRoom(host, needs) && isAllowed(host, needs) && isBetter(host, best)) {
      best = host;
    }
  }
  return best?.hostId ?? null;
}

/** Whether one of them could hold it if it were empty. */
export const couldEver = (hosts: readonly HostView[], needs: Needs): boolean =>
  hosts.some((host) => isAllowed(host, needs) && host.memoryMb >= needs.memoryMb);

/** Whether it is not the pace of starts alone that one waits for. */
export const mayLackRoom = (hosts: readonly HostView[], needs: Needs): boolean =>
  hosts.some((host) => host.mayStart && isAllowed(host, needs));

const isAllowed = (host: HostView, { onlyHost, withImage }: Needs): boolean =>
  withImage === host.takesImages && (onlyHost === null || onlyHost === host.hostId);

const hasRoom = (host: HostView, { memoryMb }: Needs): boolean =>
  host.sandboxes < host.maxSandboxes && host.usedMemoryMb + memoryMb <= host.memoryMb;

function isBetter(host: HostView, than: HostView | null): boolean {
  if (than === null) return true;
  if (host.hasImage !== than.hasImage) return host.hasImage;
  return loadOf(host) < loadOf(than);
}

const loadOf = (host: HostView): number =>
  Math.max(host.sandboxes / host.maxSandboxes, host.usedMemoryMb / host.memoryMb);
