/** `rolldeck login-url`, `token`, `doctor`, `build`: things about the server itself. */
import { type Command, Option } from "commander";
import { type ConnectionFlags, connect, dataFolderOf } from "./connection.ts";
import { print, table } from "./output.ts";

interface Flags extends ConnectionFlags {
  readonly json?: boolean;
}

export function addServerCommands(program: Command): void {
  program
    .command("login-url")
    .description("Print a sign-in link: works once, for 10 minutes")
    .option("--url <url>", "server address")
    .option("--data-dir <folder>", "data folder of the server")
    .option("--json", "print JSON")
    .action(loginUrl);
  program
    .command("token")
    .description("Manage API tokens")
    .command("create <name>")
    .description("Make an API token; its secret is shown once")
    .addOption(new Option("--scope <scope>", "what it may do").choices(["read", "write"]).default("write"))
    .option("--url <url>", "server address")
    .option("--data-dir <folder>", "data folder of the server")
    .option("--json", "print JSON")
    .action(createToken);
  program
    .command("doctor")
    .description("Check this installation and print each fix")
    .option("--data-dir <folder>", "data folder of the server")
    .option("--json", "print JSON")
    .action(doctor);
  program.command("build").description("Build the pages without starting anything").action(buildPages);
}

async function loginUrl(flags: Flags): Promise<void> {
  const { rolldeck, url } = connect(flags);
  const { code, expiresAt } = await rolldeck.createSignInCode();
  const link = `${url}/sign-in?code=${code}`;
  print(flags.json === true, { url: link, expiresAt }, () => link);
}

async function createToken(name: string, flags: Flags & { scope: "read" | "write" }): Promise<void> {
  const created = await connect(flags).rolldeck.createToken({ name, scope: flags.scope });
  print(flags.json === true, created, () => created.secret);
}

async function doctor(flags: Flags): Promise<void> {
  const { examine } = await import("./doctor.ts");
  const findings = await examine(process.env.ROLLDECK_ROOT ?? process.cwd(), dataFolderOf(flags));
  if (findings.some((finding) => finding.state === "failed")) process.exitCode = 1;
  print(flags.json === true, findings, () =>
    table(
      ["", "what", "found", "fix"],
      findings.map((finding) => [
        { ok: "●", warning: "○", failed: "▲" }[finding.state],
        finding.what,
        finding.detail,
        finding.fix ?? "",
      ]),
    ),
  );
}

async function buildPages(): Promise<void> {
  const { ensureWebBuilt } = await import("../start/web-build.ts");
  const { built, tookMs } = await ensureWebBuilt(process.env.ROLLDECK_ROOT ?? process.cwd(), (line) =>
    process.stdout.write(`${line}\n`),
  );
  process.stdout.write(built ? `built in ${(tookMs / 1000).toFixed(0)} s\n` : "up to date\n");
}
