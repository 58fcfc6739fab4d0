/**
 * Where the rows of a file begin and what marks them: twelve bytes a row, and their names where they have any. Invariant: rows
 * are added in their order in the file; a name is added before its row.
 */
import { createHash } from "node:crypto";

export interface RowPlaces {
  readonly count: number;
  /** Bytes of a row; white space may follow it. */
  read(index: number): Buffer;
  mark(index: number): number;
  label(index: number): string | null;
}

export class RowIndex {
  readonly #starts: number[] = [];
  readonly #marks: number[] = [];
  readonly #names: string[] = [];

  name(name: string): void {
    this.#names.push(name);
  }

  /** @param start byte offset of the row */
  add(start: number, bytes: Uint8Array): void {
    this.#starts.push(start);
    this.#marks.push(createHash("sha256").update(bytes).digest().readUInt32BE(0));
  }

  /** @param end byte offset behind the last row */
  places(end: number, read: (start: number, length: number) => Buffer): RowPlaces {
    const starts = Float64Array.from(this.#starts);
    const marks = Uint32Array.from(this.#marks);
    const names = this.#names;
    return {
      count: starts.length,
      read: (index) => {
        const start = starts[index] ?? end;
        return read(start, (starts[index + 1] ?? end) - start);
      },
      mark: (index) => marks[index] ?? 0,
      label: (index) => names[index] ?? null,
    };
  }
}
