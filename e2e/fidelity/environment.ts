/** One Python environment per outside package; nothing of ours runs in it but the scripts of infra/fidelity. */
import { prepareLocked, type Say } from "../runner/locked-environment.ts";
import { lockFile, type OutsidePackage } from "./packages.ts";

/** The interpreter of a package's environment. @throws EnvironmentError */
export const prepareEnvironment = (name: OutsidePackage, say: Say): Promise<string> =>
  prepareLocked({ name, shelf: "fidelity", lock: lockFile(name) }, say);
