/** Which sandboxes could be opened here, for `rolldeck doctor`: asked of each runtime itself. Opens nothing. */
import { sandboxRuntimes } from "@rolldeck/contracts/run-config";
import { SandboxRuntimes } from "@rolldeck/sandbox/runtimes";
import { parseSandboxSettings } from "@rolldeck/sandbox/settings";
import type { Finding } from "./finding.ts";

const fixes = {
  docker: "only tasks with images need it: start Docker, or name its socket in ROLLDECK_DOCKER_SOCKET",
  process: "only tasks without images need it: install bubblewrap (Debian: apt install bubblewrap)",
  remote: "look at the sandbox server that ROLLDECK_SANDBOX_SERVER names",
  kubernetes: "look at the cluster that ROLLDECK_KUBECONFIG names",
} as const;

const answerMs = 5_000;

export async function findSandboxes(stateFolder: string): Promise<Finding[]> {
  const settings = parseSandboxSettings(process.env, process.cwd());
  const runtimes = new SandboxRuntimes({ settings, deployment: "doctor", stateFolder, onTrouble: () => undefined });
  try {
    const known = sandboxRuntimes.filter((name) => runtimes.names().includes(name));
    return await Promise.all(
      known.map(async (name): Promise<Finding> => {
        const runtime = runtimes.get(name);
        const ailment = await runtime.ailment(AbortSignal.timeout(answerMs)).catch(String);
        const what = `Sandboxes: ${name}`;
        if (ailment !== null) return { what, state: "warning", detail: ailment, fix: fixes[name] };
        return { what, state: "ok", detail: runtime.isolation, fix: null };
      }),
    );
  } finally {
    await runtimes.disconnect();
  }
}
