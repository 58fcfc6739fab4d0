/** The api process: the one public port. Ends cleanly on SIGTERM and SIGINT. */
import { InputError } from "@rolldeck/contracts/errors";
import { ZodError } from "zod";
import { compose } from "./compose.ts";
import { readSettings } from "./env.ts";
import { createLog, errorFacts } from "./log.ts";

function settingsOrExit() {
  try {
    return readSettings(process.env);
  } catch (error) {
    if (!(error instanceof ZodError) && !(error instanceof InputError)) throw error;
    for (const { path, message } of error.issues) {
      process.stderr.write(`rolldeck api: ${typeof path === "string" ? path : path.join(".")}: ${message}\n`);
    }
    process.exit(2);
  }
}

const settings = settingsOrExit();
const log = createLog(settings.logLevel);
const api = await compose(settings, log).catch((error: unknown) => {
  log.error(errorFacts(error), "could not start");
  process.exit(1);
});
const { url } = await api.listen().catch((error: unknown) => {
  log.error(errorFacts(error), "could not listen");
  process.exit(1);
});
log.info({ url }, "listening");

let ending = false;
for (const signal of ["SIGTERM", "SIGINT"] as const)
  process.on(signal, () => {
    if (ending) return;
    ending = true;
    log.info({ signal }, "ending");
    api.close().then(
      () => process.exit(0),
      (error: unknown) => {
        log.error(errorFacts(error), "did not end cleanly");
        process.exit(1);
      },
    );
  });
