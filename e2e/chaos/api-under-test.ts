/** The real api process on one port, and a client of it that outlives its deaths. */
import { readFile } from "node:fs/promises";
import path from "node:path";
import { Rolldeck } from "@rolldeck/client/rolldeck";
import { freePort } from "@rolldeck/queue/testing/free-port";
import { bundle, ProcessUnderTest, type Program } from "./process-under-test.ts";

const program: Program = { name: "api", entry: "apps/api/src/main.ts", app: "api", ready: '"listening"' };

export class ApiUnderTest {
  readonly rolldeck: Rolldeck;
  readonly #env: Readonly<Record<string, string>>;
  #process: ProcessUnderTest;

  private constructor(env: Readonly<Record<string, string>>, running: ProcessUnderTest, rolldeck: Rolldeck) {
    this.#env = env;
    this.#process = running;
    this.rolldeck = rolldeck;
  }

  /** @param env with ROLLDECK_DATA_DIR, where its owner's token is */
  static async start(env: Readonly<Record<string, string>> & { readonly ROLLDECK_DATA_DIR: string }) {
    await bundle(program);
    const port = String(await freePort());
    const all = { ...env, ROLLDECK_PORT: port, ROLLDECK_LOG_LEVEL: "info" };
    const running = new ProcessUnderTest(program, all);
    await running.started();
    const token = (await readFile(path.join(env.ROLLDECK_DATA_DIR, "owner-token"), "utf8")).trim();
    return new ApiUnderTest(all, running, new Rolldeck({ url: `http://127.0.0.1:${port}`, token }));
  }

  get output(): string {
    return this.#process.output;
  }
  kill(): Promise<void> {
    return this.#process.kill();
  }
  /** On the same port, so that clients find it again. */
  async restart(): Promise<void> {
    await this.kill();
    this.#process = new ProcessUnderTest(program, this.#env);
    await this.#process.started();
  }
}
