/** CSV that a spreadsheet opens as data: cells starting with = + - @ (or tab, CR) that are not numbers get a leading quote. */
export type Cell = string | number | null;

export function csvCell(cell: Cell): string {
  if (cell === null) return "";
  if (typeof cell === "number") return String(cell);
  const safe = /^[=+\-@\t\r]/.test(cell) && !/^-?\d+(\.\d+)?(e-?\d+)?$/i.test(cell) ? `'${cell}` : cell;
  return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

export const toCsv = (rows: readonly (readonly Cell[])[]): string =>
  `${rows.map((row) => row.map(csvCell).join(",")).join("\r\n")}\r\n`;
