/** `rolldeck run dispatcher`, `step|group|rollout hold|resume|cancel`, `quota …`, `pool …`: how runs are dispatched while they run. */
import { PartActions, type PartReply, type Quotas } from "@rolldeck/contracts/api/dispatch";
import { type Resource, resources } from "@rolldeck/contracts/plan";
import { type Command, InvalidArgumentError, Option } from "commander";
import { CommandFailure } from "./command-failure.ts";
import { type ConnectionFlags, connect, withConnection } from "./connection.ts";
import { plain, print, table } from "./output.ts";

interface Flags extends ConnectionFlags {
  readonly json?: boolean;
}

const commandNamed = (program: Command, name: string, description: string): Command =>
  program.commands.find((command) => command.name() === name) ?? program.command(name).description(description);

/** After the commands of runs and rollouts: they are added to those. */
export function addDispatchCommands(program: Command): void {
  withConnection(commandNamed(program, "run", "Steer runs").command("dispatcher <run>"))
    .description("Change how a run is dispatched while it runs; what is not named stays")
    .option("--init <n>", "rollouts in the init stage at once", whole)
    .option("--run <n>", "rollouts in the run stage at once", whole)
    .option("--evaluate <n>", "rollouts in the evaluate stage at once", whole)
    .option("--weight <n>", "share of a pool among runs of the same priority", number)
    .option("--priority <n>", "0 to 9; higher is served first", whole)
    .option("--starts-per-second <n>", "rollouts that may start per second; `none` = no limit", asRate)
    .option("--adaptive <on|off>", "let the engine's load set how many run", onOff)
    .action(changeDispatcher);
  const acting = {
    step: (client: Client, id: string, action: Action, options: Reason) => client.actOnStep(id, action, options),
    group: (client: Client, id: string, action: Action, options: Reason) => client.actOnGroup(id, action, options),
    rollout: (client: Client, id: string, action: Action, options: Reason) => client.actOnRollout(id, action, options),
  };
  for (const [part, act] of Object.entries(acting)) {
    const command = commandNamed(program, part, `Hold, resume or cancel a ${part}`);
    for (const action of PartActions)
      withConnection(command.command(`${action} <${part}>`))
        .description(words[action](part))
        .option("--reason <text>", "for the run's log")
        .action(async (id: string, flags: Flags & Reason) => {
          const { reason } = flags;
          const reply = await act(connect(flags).rolldeck, id, action, reason === undefined ? {} : { reason });
          print(flags.json === true, reply, () => describe(reply));
        });
  }
  addQuotaCommands(program);
}

type Client = ReturnType<typeof connect>["rolldeck"];
type Action = (typeof PartActions)[number];
interface Reason {
  readonly reason?: string;
}
const words: Record<Action, (part: string) => string> = {
  hold: (part) => `Keep a ${part} from its next stage`,
  resume: (part) => `Let a held ${part} go on`,
  cancel: (part) => `End what is unsettled of a ${part}; what it did can still be read`,
};

const describe = ({ part, id, held, over, cancelled }: PartReply): string =>
  `${part} ${id} ${over ? "is over" : held ? "is held" : "goes on"}${cancelled === 0 ? "" : `, ${cancelled} cancelled`}`;

interface Change {
  readonly init?: number;
  readonly run?: number;
  readonly evaluate?: number;
  readonly weight?: number;
  readonly priority?: number;
  readonly startsPerSecond?: number | "none";
  readonly adaptive?: boolean;
}

async function changeDispatcher(runId: string, flags: Flags & Change): Promise<void> {
  const { init, run, evaluate, weight, priority, startsPerSecond, adaptive } = flags;
  const named = (...values: unknown[]): boolean => values.some((value) => value !== undefined);
  // What is undefined does not travel: it stays as it is.
  const bounds = named(init, run, evaluate) ? { init, run, evaluate } : undefined;
  if (!named(bounds, weight, priority, startsPerSecond, adaptive))
    throw new CommandFailure("nothing to change: name a bound, weight, priority, rate or --adaptive");
  const rate = startsPerSecond === "none" ? null : startsPerSecond;
  const change = { bounds, weight, priority, startsPerSecond: rate, adaptive };
  const reply = await connect(flags).rolldeck.changeDispatcher({ runId, ...change });
  print(flags.json === true, reply, () => {
    const { dispatcher } = reply;
    const rows: [string, string | number][] = [
      ["init", dispatcher.bounds.init],
      ["run", dispatcher.bounds.run],
      ["evaluate", dispatcher.bounds.evaluate],
      ["weight", dispatcher.weight],
      ["priority", dispatcher.priority],
      ["starts per second", dispatcher.startsPerSecond ?? "no limit"],
      ["adaptive", dispatcher.adaptive ? "on" : "off"],
    ];
    return table(["setting", "now"], rows);
  });
}

function addQuotaCommands(program: Command): void {
  const quota = program.command("quota").description("What the runs of a project may hold together");
  withConnection(quota.command("list"))
    .description("List quotas and pools")
    .action(async (flags: Flags) => show(flags, await connect(flags).rolldeck.listQuotas()));
  const resource = new Option("-r, --resource <name>", "which pool").choices(resources).makeOptionMandatory();
  withConnection(quota.command("set"))
    .description("Set a project's quota of a pool; `none` takes it away")
    .argument("<project>")
    .argument("<quota>", "leases, or `none`", (text) => (text === "none" ? text : whole(text)))
    .addOption(resource)
    .action(async (project: string, asked: number | "none", flags: Flags & { resource: Resource }) => {
      const quotas = { project, resource: flags.resource, quota: asked === "none" ? null : asked };
      show(flags, await connect(flags).rolldeck.setQuota(quotas));
    });
  withConnection(program.command("pool").description("Sizes of pools").command("set <resource>"))
    .description("Set a pool's size or its reserve for evaluation")
    .option("--size <n>", "leases in all", whole)
    .option("--evaluation-reserve <n>", "of them, those that only evaluation may take", whole)
    .action(async (name: string, flags: Flags & { size?: number; evaluationReserve?: number }) => {
      const found = resources.find((one) => one === name);
      if (found === undefined) throw new CommandFailure(`no pool ${name}; there are ${resources.join(", ")}`);
      const { size, evaluationReserve } = flags;
      if (size === undefined && evaluationReserve === undefined)
        throw new CommandFailure("nothing to set: name --size or --evaluation-reserve");
      show(flags, await connect(flags).rolldeck.setPool({ resource: found, size, evaluationReserve }));
    });
}

function show(flags: Flags, quotas: Quotas): void {
  print(flags.json === true, quotas, () =>
    [
      table(
        ["pool", "size", "used", "for evaluation"],
        quotas.pools.map((pool) => [pool.resource, pool.size, pool.used, pool.evaluationReserve]),
      ),
      quotas.quotas.length === 0
        ? "no quotas"
        : table(
            ["project", "pool", "quota"],
            quotas.quotas.map((each) => [plain(each.project), each.resource, each.quota]),
          ),
    ].join("\n\n"),
  );
}

function number(text: string): number {
  const value = Number(text);
  if (text.trim() === "" || !Number.isFinite(value)) throw new InvalidArgumentError("a number");
  return value;
}
function whole(text: string): number {
  const value = number(text);
  if (!Number.isInteger(value) || value < 0) throw new InvalidArgumentError("a whole number");
  return value;
}
// The parser takes null for a value that is missing.
const asRate = (text: string): number | "none" => (text === "none" ? text : number(text));
function onOff(text: string): boolean {
  if (text !== "on" && text !== "off") throw new InvalidArgumentError("on or off");
  return text === "on";
}
