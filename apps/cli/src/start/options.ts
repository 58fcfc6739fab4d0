/** Flags of `npm start`. Only these and `ROLLDECK_*` variables count; an ambient DATABASE_URL is ignored. */
import { Command, InvalidArgumentError, Option } from "commander";
import { z } from "zod";

/** What one start can run; a container runs one or two of them. */
export const parts = ["api", "web", "worker", "gpu-worker", "fleet"] as const;
export type Part = (typeof parts)[number];

export const StartOptions = z.object({
  demo: z.boolean(),
  port: z.int().min(0).max(65_535),
  host: z.string(),
  dataDir: z.string().min(1).optional(),
  databaseUrl: z
    .url({ protocol: /^postgres(ql)?$/, error: "must look like postgresql://user:password@host:port/name" })
    .optional(),
  redisUrl: z.url({ protocol: /^rediss?$/, error: "must look like redis://host:port" }).optional(),
  torch: z.enum(["cpu", "cuda"]).optional(),
  dev: z.boolean(),
  only: z.array(z.enum(parts)),
});
export type StartOptions = z.infer<typeof StartOptions>;

export const defaultPort = 4477;

const toPort = (text: string): number => {
  const port = Number(text);
  if (!Number.isInteger(port) || port < 0 || port > 65_535) throw new InvalidArgumentError("a port is 0 to 65535");
  return port;
};

/** The `start` command with its flags; `act` gets them parsed. */
export function startCommand(act: (options: StartOptions) => Promise<void>): Command {
  return new Command("start")
    .description("Start Rolldeck: database, API, pages, worker and GPU worker, in one terminal")
    .addOption(
      new Option("--port <port>", "public port; the next free one is taken when it is busy")
        .env("ROLLDECK_PORT")
        .default(defaultPort)
        .argParser(toPort),
    )
    .addOption(new Option("--host <address>", "address to listen on").env("ROLLDECK_HOST").default("127.0.0.1"))
    .addOption(new Option("--data-dir <folder>", "where everything is kept").env("ROLLDECK_DATA_DIR"))
    .addOption(
      new Option("--database-url <url>", "use this Postgres (15 or newer) instead of the embedded one").env(
        "ROLLDECK_DATABASE_URL",
      ),
    )
    .addOption(
      new Option("--redis-url <url>", "use this Redis or Valkey for the queue instead of Postgres").env(
        "ROLLDECK_REDIS_URL",
      ),
    )
    .addOption(
      new Option("--torch <build>", "which PyTorch to install when none is there")
        .choices(["cpu", "cuda"])
        .env("ROLLDECK_TORCH"),
    )
    .option("--no-demo", "do not launch the quickstart run on an empty database")
    .addOption(
      new Option("--only <parts>", `run only these, comma separated: ${parts.join(", ")}`)
        .env("ROLLDECK_ONLY")
        .default([...parts])
        .argParser((text) => text.split(",").map((part) => part.trim())),
    )
    .option("--dev", "run the pages in development mode, with reload", false)
    .action(async (flags: unknown) => {
      const parsed = StartOptions.safeParse(flags);
      if (!parsed.success) {
        const issue = parsed.error.issues[0];
        const flag = String(issue?.path[0] ?? "").replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
        throw new Error(`--${flag}: ${issue?.message}`);
      }
      await act(parsed.data);
    });
}
