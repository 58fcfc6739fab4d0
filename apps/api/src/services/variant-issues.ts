/** What is wrong with the variants of a comparison, each time with the variant's name. Pure. */
import { maxVariants } from "@rolldeck/contracts/api/comparisons";
import type { ConfigIssue } from "@rolldeck/contracts/api/runs";
import type { InputIssue } from "@rolldeck/contracts/errors";
import type { z } from "zod";

type Issue = z.output<typeof ConfigIssue>;
const maxIssues = 50;

/**
 * What every variant is refused for is the common config's fault and said once, at `config`; anything else is said of each variant
 * that it refuses, at `variants[i]`.
 */
export function variantIssues(
  variants: readonly { readonly label: string; readonly issues: readonly Issue[] }[],
): InputIssue[] {
  const key = ({ path, message }: Issue): string => `${path}\n${message}`;
  const times = new Map<string, number>();
  for (const { issues } of variants)
    for (const each of new Set(issues.map(key))) times.set(each, (times.get(each) ?? 0) + 1);
  const isCommon = (issue: Issue): boolean => variants.length > 1 && times.get(key(issue)) === variants.length;
  const common = (variants[0]?.issues ?? []).filter(isCommon).map((issue) => inputIssue(issue, "config", ""));
  const own = variants.map(({ label, issues }, at) =>
    issues
      .filter((issue) => !isCommon(issue))
      .map((issue) => inputIssue(issue, `variants[${at}]`, `variant "${label}": `)),
  );
  // No variant's many issues may leave another unsaid.
  const share = Math.ceil(maxIssues / maxVariants);
  const first = own.flatMap((issues) => issues.slice(0, share));
  const rest = own.flatMap((issues) => issues.slice(share));
  return [...common, ...first, ...rest].slice(0, common.length + maxIssues);
}

const inputIssue = ({ path, message, fix }: Issue, at: string, who: string): InputIssue => ({
  path: path === "" ? at : `${at}.${path}`,
  message: `${who}${message}`,
  ...(fix === null ? {} : { fix }),
});
