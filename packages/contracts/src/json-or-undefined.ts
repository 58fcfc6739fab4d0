/** JSON from outside, for a schema to judge. @returns undefined where the text is no JSON */
export function jsonOrUndefined(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
