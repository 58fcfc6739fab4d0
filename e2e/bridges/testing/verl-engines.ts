/** VeRL in tests: its interpreter, and where its bridge's gateway answers for its engines. */
import { freePort } from "@rolldeck/queue/testing/free-port";

/** @throws when ROLLDECK_VERL_PYTHON names none: the suite `verl-bridge` prepares one and sets it */
export function verlPython(): string {
  const python = process.env.ROLLDECK_VERL_PYTHON;
  if (!python) throw new Error("set ROLLDECK_VERL_PYTHON; npm test -- verl-bridge does so by itself");
  return python;
}

/** How long a run waits for the gateway: it answers when the trainer has imported all of VeRL, which takes minutes on a busy machine. */
export const awayMinutes = 30;

/** A free address, and the trainer's environment that makes its engines answer there. */
export async function gatewayAddress(): Promise<{ readonly endpoint: string; readonly env: Record<string, string> }> {
  const listen = `127.0.0.1:${await freePort()}`;
  return { endpoint: `http://${listen}`, env: { ROLLDECK_SAMPLER_LISTEN: listen, ROLLDECK_LEASE_S: "6" } };
}
