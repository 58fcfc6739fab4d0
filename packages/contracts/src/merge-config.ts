/**
 * A config with a change made to it: mappings are merged key by key, anything else takes the place of what was there, lists and null
 * included (null is a value of many settings). Pure; neither argument is changed.
 */
export function mergeConfig(base: unknown, change: unknown): unknown {
  if (!isMapping(base) || !isMapping(change)) return structuredClone(change);
  const keys = new Set([...Object.keys(base), ...Object.keys(change)]);
  // fromEntries defines keys: one that is called __proto__ stays a key.
  return Object.fromEntries(
    [...keys].map((key) => [
      key,
      Object.hasOwn(change, key)
        ? Object.hasOwn(base, key)
          ? mergeConfig(base[key], change[key])
          : structuredClone(change[key])
        : structuredClone(base[key]),
    ]),
  );
}

const isMapping = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);
