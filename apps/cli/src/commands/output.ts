/** How commands print: aligned text for people, one JSON value with `--json`. */

/** Rows as left-aligned columns under their names; numbers right-aligned. */
export function table(columns: readonly string[], rows: readonly (readonly (string | number | null)[])[]): string {
  const cells = rows.map((row) =>
    row.map((cell) => (cell === null ? "n/a" : typeof cell === "number" ? significant(cell) : cell)),
  );
  const numeric = columns.map((_, at) => rows.some((row) => typeof row[at] === "number"));
  const widths = columns.map((name, at) => Math.max(name.length, ...cells.map((row) => row[at]?.length ?? 0)));
  const line = (row: readonly string[]): string =>
    row
      .map((cell, at) => (numeric[at] ? cell.padStart(widths[at] ?? 0) : cell.padEnd(widths[at] ?? 0)))
      .join("  ")
      .trimEnd();
  return [line(columns), ...cells.map(line)].join("\n");
}

/** Three significant digits; whole numbers as they are. */
export const significant = (value: number): string =>
  Number.isInteger(value) ? String(value) : String(Number(value.toPrecision(3)));

/** Terminal control characters from names and model text must not reach the terminal. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: stripping them is the point
export const plain = (text: string): string => text.replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g, "\u2400");

export function print(json: boolean, value: unknown, text: () => string): void {
  process.stdout.write(`${json ? JSON.stringify(value) : text()}\n`);
}
