/**
 * `${NAME}` and `${NAME:-default}` in values of task.toml and of compose files. Invariant: a task reads what the operator listed
 * and nothing else of this process's environment, whatever its files say.
 */
import type { StringMap } from "./task-file.ts";

/** What tasks may read, by name. */
export type OperatorVariables = Readonly<Record<string, string>>;

/**
 * @param listed names, with commas or blanks between them: `ROLLDECK_TASK_ENV`
 * @param environment of this process
 */
export function operatorVariables(
  listed: string | undefined,
  environment: Readonly<Record<string, string | undefined>>,
): OperatorVariables {
  // The server's own settings hold its keys: no list gives them to tasks.
  const names = (listed ?? "").split(/[\s,]+/u).filter((name) => name !== "" && !name.startsWith("ROLLDECK_"));
  return Object.fromEntries(
    names.flatMap((name) => {
      const value = environment[name];
      return value === undefined ? [] : [[name, value]];
    }),
  );
}

const reference = /\$\$|\$\{([A-Za-z_][A-Za-z0-9_]*)(?:(:?-)([^}]*))?\}/gu;

/** Names that a text needs and does not get. */
export function missingVariables(text: string, variables: OperatorVariables): string[] {
  return [...text.matchAll(reference)].flatMap(([, name, dash]) =>
    name === undefined || dash !== undefined || Object.hasOwn(variables, name) ? [] : [name],
  );
}

/** A reference to nothing becomes nothing: ask `missingVariables` first. */
export function fillIn(text: string, variables: OperatorVariables): string {
  return text.replaceAll(reference, (whole: string, name?: string, dash?: string, other?: string) => {
    if (name === undefined) return whole === "$$" ? "$" : whole;
    const value = Object.hasOwn(variables, name) ? variables[name] : undefined;
    // With `:-` an empty value counts as none, as in a shell.
    if (value !== undefined && !(value === "" && dash === ":-")) return value;
    return other ?? "";
  });
}

export const fillInAll = (map: StringMap, variables: OperatorVariables): Record<string, string> =>
  Object.fromEntries(Object.entries(map).map(([name, text]) => [name, fillIn(text, variables)]));
