import type { Hint } from "./hint.ts";

const fewTimes = 2;

/** When calls of one tool have failed twice or more in a row. */
export const repeatedFailure: Hint = ({ failures, toolNames }) => {
  if (failures.count < fewTimes) return null;
  const others = toolNames.filter((name) => name !== failures.name);
  const instead = others.length > 0 ? ` or use another tool (${others.join(", ")})` : "";
  const name = JSON.stringify(failures.name.slice(0, 64));
  return `hint: ${name} has failed ${failures.count} times in a row; read the error, change the arguments${instead}`;
};
