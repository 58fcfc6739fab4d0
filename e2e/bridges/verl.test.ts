/**
 * VeRL trains on rollouts of ours: its own configuration, data loader, hook, `DataProto`, advantages, metrics and loss; its engines
 * answer through the bridge's gateway, which ends and comes back with the trainer.
 */
import { describeBridge } from "./testing/bridge-suite.ts";
import { awayMinutes, gatewayAddress, verlPython } from "./testing/verl-engines.ts";

describeBridge(() => ({
  name: "verl",
  python: verlPython(),
  open: async () => {
    const { endpoint, env } = await gatewayAddress();
    return { backend: { name: "openai-completions", endpoint, awayMinutes }, trainerEnv: env };
  },
}));
