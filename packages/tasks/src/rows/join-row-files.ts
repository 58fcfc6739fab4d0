import type { RowFile } from "./row-file.ts";

/** Parts of a data set as one, in their order. */
export function joinRowFiles<R>(files: readonly RowFile<R>[]): RowFile<R> {
  const [first] = files;
  if (files.length === 1 && first) return first;
  const count = files.reduce((sum, file) => sum + file.count, 0);
  const at = (index: number): { readonly file: RowFile<R>; readonly place: number } => {
    let place = index;
    for (const file of files) {
      if (place >= 0 && place < file.count) return { file, place };
      place -= file.count;
    }
    throw new RangeError(`the parts have ${count} rows, not ${index}`);
  };
  const of = <T>(index: number, ask: (file: RowFile<R>, place: number) => T): T => {
    const { file, place } = at(index);
    return ask(file, place);
  };
  return {
    count,
    row: (index) => of(index, (file, place) => file.row(place)),
    mark: (index) => of(index, (file, place) => file.mark(place)),
    label: (index) => of(index, (file, place) => file.label(place)),
  };
}
