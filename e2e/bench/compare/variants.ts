/** The comparison's config and what each backend changes of it. */
import { presets } from "@rolldeck/contracts/presets";

const { config: quickstart } = presets.quickstart;
export const groups = 8;
export const samples = 8;
export const rank = 32;

/** The key chain by GRPO with clip and k3 in the loss; sampled at 1, as SkyRL's trainers compute log-probabilities at no other. */
export const comparedConfig = ({ seed, steps }: { readonly seed: number; readonly steps: number }) => ({
  ...quickstart,
  tags: ["compare"],
  seed,
  model: { name: "quickstart" },
  agent: { ...quickstart.agent, sampling: { ...quickstart.agent.sampling, temperature: 1 } },
  algorithm: {
    ...quickstart.algorithm,
    groupSize: samples,
    groupsPerStep: groups,
    advantage: "grpo",
    kl: { coefficient: 1e-3, placement: "loss", estimator: "k3" },
    dualClip: null,
    // Every rollout has its forward pass.
    trainCut: true,
    filterZeroVariance: false,
  },
  evaluation: { samples: 0 },
  checkpoints: { every: 10, keep: 2 },
  budget: { steps },
});

/** @param addresses of the engines of outside trainers, by the trainer's name */
export const variants = (addresses: ReadonlyMap<string, string>) => [
  { label: "local" },
  // Adapters bear higher rates than all weights do.
  { label: "local LoRA", change: { backend: { lora: { rank } }, algorithm: { learningRate: 3e-3 } } },
  ...[...addresses].map(([label, endpoint]) => ({
    label,
    change: { stepSource: "driven", backend: { name: "openai-completions", endpoint } },
  })),
];

/** Of this config, by the capability table: SkyRL's Tinker server has neither a reference policy nor a gradient clip of the run's. */
export const refusedFields = ["algorithm.kl.coefficient", "algorithm.gradClipNorm"];
