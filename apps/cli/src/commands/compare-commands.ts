/** `rolldeck compare …`: one config launched as several runs, and looked at together. */
import type { ComparisonPage } from "@rolldeck/contracts/api/comparisons";
import { presets } from "@rolldeck/contracts/presets";
import type { Command } from "commander";
import { parse } from "yaml";
import { z } from "zod";
import { CommandFailure } from "./command-failure.ts";
import { comparisonText } from "./comparison-text.ts";
import { type ConnectionFlags, connect, withConnection } from "./connection.ts";
import { plain, print, table } from "./output.ts";
import { readText } from "./read-text.ts";

interface Flags extends ConnectionFlags {
  readonly json?: boolean;
}

export function addCompareCommands(program: Command): void {
  const compare = program.command("compare").description("Launch one config as several runs, and compare them");
  withConnection(compare.command("launch"))
    .description("Launch a comparison: all of its runs, or none")
    .requiredOption("-f, --file <file>", "YAML or JSON with name, config and variants; - for standard input")
    .option("--preset <name>", "a preset as config, in a file without one")
    .option("--key <key>", "idempotency key: the same key launches once")
    .action(launch);
  withConnection(compare.command("show <comparison>"))
    .description("Print its runs by shared metrics, and what each backend says of itself")
    .action(async (comparisonId: string, flags: Flags) => {
      const comparison = await connect(flags).rolldeck.getComparison(comparisonId);
      print(flags.json === true, comparison, () => comparisonText(comparison));
    });
  withConnection(compare.command("list"))
    .description("List comparisons, newest first")
    .action(async (flags: Flags) => {
      const page = await connect(flags).rolldeck.listComparisons();
      print(flags.json === true, page, () => listText(page));
    });
}

/** What the file has to have before the server can say the rest. */
const FileShape = z.strictObject({
  name: z.string(),
  config: z.unknown().optional(),
  variants: z.array(z.strictObject({ label: z.string(), change: z.record(z.string(), z.json()).optional() })),
});
export type ComparisonFile = z.infer<typeof FileShape> & { readonly config: unknown };

/**
 * @param text YAML or JSON
 * @param preset takes the place of a config that the file does not have
 * @throws CommandFailure that names the field
 */
export function parseComparisonFile(text: string, preset?: string): ComparisonFile {
  const parsed = FileShape.safeParse(parseYaml(text));
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    throw new CommandFailure(`${issue?.path.join(".") || "the file"}: ${issue?.message}`);
  }
  if (preset === undefined) {
    if (parsed.data.config === undefined) throw new CommandFailure("config: is missing; write one, or name a --preset");
    return { ...parsed.data, config: parsed.data.config };
  }
  if (parsed.data.config !== undefined)
    throw new CommandFailure("config: is in the file; leave it out, or leave --preset out");
  const found = Object.entries(presets).find(([name]) => name === preset)?.[1];
  if (found === undefined)
    throw new CommandFailure(`no preset ${preset}; there are ${Object.keys(presets).join(", ")}`);
  return { ...parsed.data, config: found.config };
}

function parseYaml(text: string): unknown {
  try {
    return parse(text);
  } catch (cause) {
    const why = cause instanceof Error ? cause.message.split("\n")[0] : String(cause);
    throw new CommandFailure(`the file is not valid YAML: ${why}`, { cause });
  }
}

async function launch(flags: Flags & { file: string; preset?: string; key?: string }): Promise<void> {
  const comparison = parseComparisonFile(readText(flags.file), flags.preset);
  const { rolldeck, url } = connect(flags);
  const launched = await rolldeck.launchComparison(comparison, flags.key ? { idempotencyKey: flags.key } : {});
  print(flags.json === true, launched, () =>
    [
      `launched ${launched.comparisonId}: ${url}/comparisons/${launched.comparisonId}`,
      ...launched.runs.map(({ label, runId }) => `  ${plain(label)}: ${url}/runs/${runId}`),
    ].join("\n"),
  );
}

const listText = ({ items }: ComparisonPage): string =>
  items.length === 0
    ? "no comparisons; launch one with `npx rolldeck compare launch -f comparison.yaml`"
    : table(
        ["comparison", "name", "variants", "created"],
        items.map(({ comparisonId, name, labels, createdAt }) => [
          comparisonId,
          plain(name),
          plain(labels.join(", ")),
          createdAt,
        ]),
      );
