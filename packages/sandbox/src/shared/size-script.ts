import type { SpawnRequest } from "@rolldeck/contracts/ports/sandbox";

/** Lines of a shell script before its command: runtimes tell a terminal its size only once the command runs, which may have asked by then. */
export const sizeScript = ({ columns, rows }: NonNullable<SpawnRequest["tty"]>): string =>
  `stty cols ${columns} rows ${rows} 2>/dev/null; `;
