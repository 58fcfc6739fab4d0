/** The sandbox server process: command line in, signals out. Everything else is `compose`. */
import { InputError } from "@rolldeck/contracts/errors";
import { compose } from "./compose.ts";
import { parseServerSettings } from "./settings.ts";

const stopLimitMs = 3_000;

async function main(): Promise<void> {
  const settings = parseServerSettings(process.argv.slice(2));
  const { server, gateway, say } = await compose(settings);
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(settings.port, settings.host, resolve);
  });
  gateway.start();
  const address = server.address();
  const port = typeof address === "object" && address !== null ? address.port : settings.port;
  const shownHost = settings.host.includes(":") ? `[${settings.host}]` : settings.host;
  say(`listening at ${settings.tls === null ? "http" : "https"}://${shownHost}:${port}`);
  const stop = (): void => {
    setTimeout(() => process.exit(0), stopLimitMs).unref();
    void gateway.stop().finally(() => {
      server.close(() => process.exit(0));
      server.closeAllConnections();
    });
  };
  for (const signal of ["SIGTERM", "SIGINT"] as const) process.on(signal, stop);
  // A supervisor that is gone can't stop us: its channel closes.
  if (process.channel) process.on("disconnect", stop);
}

main().catch((error: unknown) => {
  const known = error instanceof InputError;
  const message = error instanceof Error && !known ? (error.stack ?? error.message) : String(error);
  process.stderr.write(`rolldeck sandbox-server: ${message}\n`);
  process.exit(1);
});
