/** An array parameter as Postgres reads it; the driver's own serializer costs several times as much. */
export function arrayLiteral(values: readonly (string | number | boolean | null)[]): string {
  let text = "{";
  for (let place = 0; place < values.length; place++) {
    if (place > 0) text += ",";
    const value = values[place];
    if (value === null || value === undefined) text += "NULL";
    else text += typeof value === "string" ? quoted(value) : value;
  }
  return `${text}}`;
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what JSON writes in its own way
const control = /[\u0000-\u001f]/;

/** Without control characters (and surrogate halves, which cleaned text has not) JSON escapes as an array literal does. */
const quoted = (text: string): string =>
  control.test(text) ? `"${text.replaceAll("\\", "\\\\").replaceAll('"', '\\"')}"` : JSON.stringify(text);
