import type { PoolInfo } from "@rolldeck/contracts/api/schedule";

type Resource = PoolInfo["resource"];
export const poolWords: Record<Resource, { readonly label: string; readonly definition: string }> = {
  sandbox: {
    label: "Sandboxes",
    definition:
      "Sandboxes that may be there at once, agents' and graders' together; two at least, or one that grades waits.",
  },
  initSlot: { label: "Init slots", definition: "Rollouts in the init stage at once, of all runs." },
  runSlot: { label: "Run slots", definition: "Rollouts in the run stage at once, of all runs." },
  gradeSlot: { label: "Grading slots", definition: "Rollouts in the evaluate stage at once, of all runs." },
  gpu: { label: "GPUs", definition: "GPUs that runs may hold." },
};
export const resourceOrder = [
  "sandbox",
  "initSlot",
  "runSlot",
  "gradeSlot",
  "gpu",
] as const satisfies readonly Resource[];
