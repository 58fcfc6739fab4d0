/** A server at an address, or at one that moves. */
import { type KeptAliveOptions, KeptAliveServer } from "./kept-alive-server.ts";
import { type MovingAddress, MovingServer } from "./moving-server.ts";

/** One that moves is asked for with every request. */
export type ServerAddress = string | MovingAddress;

export const openServer = (
  url: ServerAddress,
  options: Omit<KeptAliveOptions, "url">,
): KeptAliveServer | MovingServer =>
  typeof url === "string" ? new KeptAliveServer({ ...options, url }) : new MovingServer(url, options);
