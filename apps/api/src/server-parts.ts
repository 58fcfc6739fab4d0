/** What the server is made of; `compose.ts` makes it. */
import type { Queryable } from "@rolldeck/db/reads/rows";
import type { Sockets } from "@rolldeck/realtime/server/attach-sockets";
import type { Identify } from "./auth/identify.ts";
import type { WebProxy } from "./http/proxy-web.ts";
import type { TrustedOrigin } from "./http/trusted-origin.ts";
import type { Log } from "./log.ts";
import type { ProcessMetrics } from "./process-metrics.ts";
import type { ServedEndpoint } from "./serve/served-endpoint.ts";
import type { Services } from "./services.ts";

export interface ServerParts {
  readonly db: Queryable;
  readonly services: Services;
  readonly identify: Identify;
  /** Null where this server knows no GPU worker. */
  readonly served: Pick<ServedEndpoint, "answer"> | null;
  readonly sockets: Sockets;
  readonly proxy: WebProxy;
  readonly trusted: TrustedOrigin;
  readonly metrics: ProcessMetrics;
  readonly log: Log;
  /** The port that is listened on: part of the cookie's name. */
  readonly port: () => number;
}
