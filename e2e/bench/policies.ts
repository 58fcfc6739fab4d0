/** The policies of the benchmarks of sampling and training, as folders that our GPU worker and `transformers` both load. */
import { z } from "zod";
import { askPython } from "./ask-python.ts";

const Policies = z.array(z.object({ name: z.string(), folder: z.string(), params: z.int() }));
export type Policy = z.infer<typeof Policies>[number];

/** @param names a list with commas @throws when there is no policy of a name */
export async function makePolicies(python: string, folder: string, names: string): Promise<Policy[]> {
  const script = "policies/make_policies.py";
  const made = await askPython({ python, script, args: [folder], answer: Policies });
  return names.split(",").map((name) => {
    const found = made.find((policy) => policy.name === name);
    if (found) return found;
    throw new Error(`--models: there is no ${name}; there are ${made.map((policy) => policy.name).join(", ")}`);
  });
}
