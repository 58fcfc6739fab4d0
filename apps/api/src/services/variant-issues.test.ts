import fc from "fast-check";
import { expect, test } from "vitest";
import { variantIssues } from "./variant-issues.ts";

const issue = (path: string, message = "is wrong", fix: string | null = null) => ({ path, message, fix });

test("each variant's refusal names the variant; what refuses all is the config's", () => {
  const common = issue("agent.dialect", 'no dialect "x"', "did you mean hermes?");
  const issues = variantIssues([
    { label: "ours", issues: [common] },
    { label: "hosted", issues: [common, issue("algorithm.kl.coefficient", "has no reference", "set it to 0")] },
  ]);
  expect(issues).toEqual([
    { path: "config.agent.dialect", message: 'no dialect "x"', fix: "did you mean hermes?" },
    {
      path: "variants[1].algorithm.kl.coefficient",
      message: 'variant "hosted": has no reference',
      fix: "set it to 0",
    },
  ]);
});

test("no refused variant goes unnamed, however much is wrong with the others", () => {
  const Variants = fc.array(fc.array(fc.string({ maxLength: 3 }), { maxLength: 60 }), { minLength: 2, maxLength: 16 });
  fc.assert(
    fc.property(Variants, (paths) => {
      const variants = paths.map((own, at) => ({ label: `v${at}`, issues: own.map((path) => issue(path)) }));
      const said = variantIssues(variants);
      const common = said.filter(({ path }) => path.startsWith("config")).length;
      for (const [at, { issues }] of variants.entries())
        if (issues.length > 0)
          expect(common > 0 || said.some(({ path }) => path.startsWith(`variants[${at}]`))).toBe(true);
      expect(said.length > 0).toBe(variants.some(({ issues }) => issues.length > 0));
    }),
  );
});
