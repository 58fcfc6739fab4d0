/**
 * An image of this machine's Node with a small server that answers as a GPU worker does before it has a model: for tests of what
 * launches, finds and ends workers. It is made in a second; the real worker's image is built by e2e/containers.
 */
import { execFileSync } from "node:child_process";
import { readFileSync, realpathSync } from "node:fs";
import { dirname } from "node:path";
import { Readable } from "node:stream";
import type Docker from "dockerode";
import { pack } from "tar-stream";

export const workerImage = "rolldeck-test-worker:1";
/** Its user is root's. */
export const rootImage = "rolldeck-test-worker:root";
const uid = 10_001;

/** Ends with 3 when it is asked to crash; says so. Takes the flags of the real one. */
export const workerScript = `
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
const args = process.argv;
const folder = args[args.indexOf("--data-dir") + 1];
const key = process.env.ROLLDECK_GPU_WORKER_KEY;
mkdirSync(folder, { recursive: true });
const bootId = String(process.hrtime.bigint());
const mark = folder + "/boots";
writeFileSync(mark, (existsSync(mark) ? readFileSync(mark, "utf8") : "") + bootId + "\\n");
process.on("SIGTERM", () => { console.log("stopping"); process.exit(0); });
const server = createServer((request, response) => {
  const send = (status, body) => response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
  if (request.url === "/api/v1/healthz") return send(200, { status: "ok" });
  if (request.headers["x-api-key"] !== key) return send(401, { detail: "wrong key" });
  if (request.url === "/ext/v1/info") return send(200, { boot_id: bootId, device: "cpu", boots: readFileSync(mark, "utf8").trim().split("\\n").length });
  if (request.url === "/crash") { console.error("about to crash"); process.exit(3); }
  send(404, { detail: "not here" });
});
server.listen(Number(args[args.indexOf("--port") + 1]), args[args.indexOf("--host") + 1], () => {
  const { address, port } = server.address();
  console.log(JSON.stringify({ url: "http://" + address + ":" + port, boot_id: bootId }));
  console.log("ready");
});
`;

const unprivileged = `USER ${uid}:${uid}`;

/** Makes both images on this daemon. */
export async function makeWorkerImage(docker: Docker): Promise<void> {
  await make(docker, "1", [unprivileged]);
  await make(docker, "root", []);
}

/** The same with another server. @param script an ES module that needs nothing beside Node @returns the image's name */
export async function makeScriptImage(docker: Docker, script: string): Promise<string> {
  await make(docker, "script", [unprivileged], script);
  return "rolldeck-test-worker:script";
}

async function make(docker: Docker, tag: string, changes: readonly string[], script = workerScript): Promise<void> {
  const archive = pack();
  const files = new Map([["bin/node", readFileSync(process.execPath)]]);
  for (const library of librariesOf(process.execPath)) files.set(library.slice(1), readFileSync(realpathSync(library)));
  const folders = new Set(["proc", "dev", "sys", "etc", "models"]);
  for (const name of files.keys()) for (let at = dirname(name); at !== "."; at = dirname(at)) folders.add(at);
  for (const name of [...folders].sort()) archive.entry({ name: `${name}/`, type: "directory", mode: 0o755 });
  archive.entry({ name: "tmp/", type: "directory", mode: 0o1777 });
  archive.entry({ name: "data/", type: "directory", mode: 0o755, uid, gid: uid });
  archive.entry({ name: "worker.mjs", mode: 0o644 }, script);
  for (const [name, bytes] of files) archive.entry({ name, mode: 0o755 }, bytes);
  archive.finalize();
  const start = 'ENTRYPOINT ["/bin/node", "/worker.mjs"]';
  const answer = await docker.importImage(Readable.from(archive), {
    ...{ repo: "rolldeck-test-worker", tag },
    changes: [...changes, start, "VOLUME /data"].join("\n"),
  });
  for await (const _progress of answer);
}

/** Paths as the program asks for them. */
function librariesOf(program: string): string[] {
  const listed = execFileSync("ldd", [program], { encoding: "utf8" });
  return [...listed.matchAll(/(\/\S+) \(0x/g)].map(([, library = ""]) => library);
}
