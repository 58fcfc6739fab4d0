/** SkyRL trains on rollouts of ours: its own input, validator, tensors, advantages and loss; its engines answer over HTTP. */
import { skyrlPython } from "../skyrl/testing/skyrl-python.ts";
import { describeBridge } from "./testing/bridge-suite.ts";

describeBridge(() => ({
  name: "skyrl",
  python: skyrlPython(),
  open: async ({ policy }) => ({ backend: { name: "openai-completions", endpoint: policy } }),
}));
