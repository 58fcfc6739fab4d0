/** A process to be killed: opens what it is told through the module's `makeRuntime`, says so, and does nothing ever after. */
import type { SandboxRuntime, SandboxSpec } from "@rolldeck/contracts/ports/sandbox";
import { z } from "zod";

const [module = "", deployment = "", specs = "[]"] = process.argv.slice(2);
const { makeRuntime } = z
  .object({
    makeRuntime: z.custom<(deployment: string) => Promise<SandboxRuntime>>((value) => typeof value === "function"),
  })
  .parse({ ...(await import(module)) });
const runtime = await makeRuntime(deployment);
const given = z.array(z.custom<SandboxSpec>()).parse(JSON.parse(specs));
await Promise.all(given.map((spec) => runtime.open(spec, new AbortController().signal)));
process.stdout.write("open\n");
setInterval(() => undefined, 60_000);
