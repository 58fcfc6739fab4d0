/** `rolldeck simulate`: what a run's steps will take under other policies and pool sizes, before a GPU is spent on it. */
import type { Gpu } from "@rolldeck/dispatch/simulator/simulation-input";
import { type Command, InvalidArgumentError } from "commander";
import type { SimulateFlags } from "./run-simulate.ts";

const positive =
  (what: string, least: number, most: number) =>
  (text: string): number => {
    const value = Number(text);
    if (Number.isFinite(value) && value >= least && value <= most) return value;
    throw new InvalidArgumentError(`${what} is ${least} to ${most}`);
  };
const seconds = positive("a duration in seconds", 0, 86_400);
const day = 86_400;

/** `4000,32,80` */
function engine(text: string): Gpu {
  const numbers = text.split(",").map(Number);
  const [peakTokensPerSecond = 0, halfAt = 0, requestTokensPerSecond = 0] = numbers;
  if (numbers.length === 3 && numbers.every((value) => Number.isFinite(value) && value > 0))
    return { peakTokensPerSecond, halfAt, requestTokensPerSecond };
  throw new InvalidArgumentError("an engine is three numbers above 0, as 4000,32,80");
}

const examples = `
Examples:
  rolldeck simulate --from-run RUN                      a run as it was, and what would make it faster
  rolldeck simulate -f run.yaml --from-run RUN          a new config over the durations of an earlier run
  rolldeck simulate -f run.yaml --run 300 --update 60   nothing recorded: means in seconds
`;

export function addSimulate(program: Command): void {
  program
    .command("simulate")
    .description("Predict a run's step time under other policies and pool sizes, and say what to change")
    .option("-f, --file <file>", "config file; - for standard input; default: the config of --from-run")
    .option("--from-run <run>", "take the durations that were recorded of this run")
    .option("--init <s>", "without records: mean of the init stage, seconds", seconds, 5)
    .option("--run <s>", "without records: mean of the run stage, seconds", seconds, 60)
    .option("--evaluate <s>", "without records: mean of the evaluate stage, seconds", seconds, 10)
    .option("--spread <sigma>", "without records: deviation of the durations' logarithm", positive("spread", 0, 2), 0.5)
    .option("--update <s>", "what an update takes, seconds; default: as recorded", positive("an update", 0, day))
    .option(
      "--engine <peak,half,one>",
      "with --from-run: sample its tokens on an engine of at most <peak> tokens/s, half of it with <half> rollouts, <one> tokens/s for a rollout alone",
      engine,
    )
    .option("--seeds <n>", "how often each setting is played", positive("seeds", 1, 32))
    .option("--limit <s>", "give up after so many seconds; default: 300", positive("a limit", 1, day))
    .option("--url <url>", "server address (ROLLDECK_URL; default: the server of the data folder)")
    .option("--data-dir <folder>", "data folder of the server")
    .option("--json", "print JSON")
    .addHelpText("after", examples)
    .action(async (flags: SimulateFlags) => {
      const { runSimulate } = await import("./run-simulate.ts");
      await runSimulate(flags);
    });
}
