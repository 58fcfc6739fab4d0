/** What a runtime is made with. */
import type { SandboxSettings } from "./settings.ts";

export interface RuntimeScene {
  readonly settings: SandboxSettings;
  /** Told apart from other deployments on the same host: put on everything that is opened, and looked for when listing. */
  readonly deployment: string;
  /** Runs, rollouts and sandboxes never see this folder; runtimes may keep state of their own in it. */
  readonly stateFolder: string;
  readonly onTrouble: (message: string, error: unknown) => void;
}
