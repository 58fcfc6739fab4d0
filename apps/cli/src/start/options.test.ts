import { describe, expect, it } from "vitest";
import { defaultPort, type StartOptions, startCommand } from "./options.ts";

async function parse(...argv: string[]): Promise<StartOptions> {
  let got: StartOptions | undefined;
  const command = startCommand(async (options) => {
    got = options;
  }).exitOverride();
  command.configureOutput({ writeErr: () => undefined });
  await command.parseAsync(argv, { from: "user" });
  if (got === undefined) throw new Error("not called");
  return got;
}

describe("npm start flags", () => {
  it("has defaults for all", async () => {
    expect(await parse()).toEqual({
      demo: true,
      port: defaultPort,
      host: "127.0.0.1",
      dev: false,
      only: ["api", "web", "worker", "gpu-worker", "fleet"],
    });
  });

  it("reads every flag", async () => {
    const options = await parse(
      "--no-demo",
      "--port",
      "0",
      "--data-dir",
      "/d",
      "--torch",
      "cpu",
      "--only",
      "api, worker",
    );
    expect(options).toMatchObject({ demo: false, port: 0, dataDir: "/d", torch: "cpu", only: ["api", "worker"] });
  });

  it.each([
    [["--database-url", "mysql://x"], /--database-url: must look like postgresql/],
    [["--redis-url", "http://x"], /--redis-url: must look like redis/],
    [["--only", "api,pages"], /--only/],
    [["--port", "70000"], /a port is 0 to 65535/],
    [["--torch", "rocm"], /Allowed choices are cpu, cuda/],
    [["--nonsense"], /unknown option/],
  ])("refuses %j", async (argv, message) => {
    await expect(parse(...argv)).rejects.toThrow(message);
  });
});
