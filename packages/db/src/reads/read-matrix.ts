/** The rollout matrix of one step: groups in order, one cell per sample. */
import { type Matrix, MatrixCell, type ReadMatrix } from "@rolldeck/contracts/api/runs";
import { endingRule } from "@rolldeck/contracts/endings";
import { NotFoundError } from "@rolldeck/contracts/errors";
import { stepStates } from "@rolldeck/contracts/lifecycle";
import { setAsideReasons } from "@rolldeck/contracts/plan";
import { z } from "zod";
import { readHead } from "./read-events.ts";
import { finite, type Queryable, readRow, readRows } from "./rows.ts";

const Row = MatrixCell.extend({
  groupId: z.string(),
  taskSet: z.string(),
  instanceId: z.string(),
  setAside: z.enum(setAsideReasons).nullable(),
  held: z.boolean(),
});
const StepRow = z.object({ stepId: z.string(), step: z.int(), state: z.enum(stepStates) });
const shownSteps = 500;

/** Without `step`: the newest one. A step that does not exist gives an empty matrix. @throws NotFoundError for the run */
export async function readMatrix(db: Queryable, input: z.output<typeof ReadMatrix>): Promise<Matrix> {
  const { runId, purpose } = input;
  if ((await readHead(db, runId)) === null) throw new NotFoundError("run", runId);
  const steps = await readRows(
    db,
    z.object({ step: z.int() }),
    `select "step" from "steps" where "run_id" = $1 and "purpose" = $2 order by "step" desc limit ${shownSteps}`,
    [runId, purpose],
  );
  const wanted = input.step ?? steps[0]?.step;
  const shown = wanted === undefined ? null : await readStep(db, runId, purpose, wanted);
  return {
    runId,
    purpose,
    step: shown?.step ?? wanted ?? null,
    state: shown?.state ?? null,
    steps: steps.map(({ step }) => step),
    groups: shown ? groupRows(await readCells(db, shown.stepId)) : [],
  };
}

const readStep = (db: Queryable, runId: string, purpose: string, step: number) =>
  readRow(
    db,
    StepRow,
    `select "id" as "stepId", "step", "state" from "steps" where "run_id" = $1 and "purpose" = $2 and "step" = $3`,
    [runId, purpose, Math.min(step, 2_147_483_647)],
  );

const readCells = (db: Queryable, stepId: string) =>
  readRows(
    db,
    Row,
    `select g."id" as "groupId", g."task" as "taskSet", g."instance_id" as "instanceId", g."set_aside" as "setAside",
       g."held", r."id" as "rolloutId",
       r."sample", r."attempt", r."stage", r."state", r."outcome", r."ending", ${finite('r."reward"')} as "reward",
       r."success", r."turns", r."flags"
     from "groups" g join "rollouts" r on r."group_id" = g."id"
     where g."step_id" = $1 order by g."position", g."id", r."sample"`,
    [stepId],
  );

function groupRows(rows: readonly z.output<typeof Row>[]): Matrix["groups"] {
  const groups = new Map<string, Matrix["groups"][number]>();
  for (const { groupId, taskSet, instanceId, setAside, held, ...cell } of rows) {
    const group = groups.get(groupId);
    if (group) group.cells.push(cell);
    else groups.set(groupId, { groupId, taskSet, instanceId, setAside, held, mean: null, cells: [cell] });
  }
  return [...groups.values()].map((group) => ({ ...group, mean: baseline(group.cells) }));
}

/** Mean of the rewards that count in the group's baseline; null before the first. */
function baseline(cells: Matrix["groups"][number]["cells"]): number | null {
  const rewards = cells.flatMap(({ ending, reward }) =>
    ending !== null && endingRule(ending).inBaseline && reward !== null ? [reward] : [],
  );
  return rewards.length === 0 ? null : rewards.reduce((sum, reward) => sum + reward / rewards.length, 0);
}
