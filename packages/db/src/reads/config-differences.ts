/** Flattens configs to dot paths and keeps those whose values differ. Pure. */

/** `{a: [{b: 1}]}` → `a[0].b` → `1`. Leaves are JSON text; empty objects and lists are leaves. */
export function flattenConfig(value: unknown, path = "", into = new Map<string, string>()): Map<string, string> {
  const entries = Array.isArray(value)
    ? value.map((item, index): [string, unknown] => [`${path}[${index}]`, item])
    : typeof value === "object" && value !== null
      ? Object.entries(value).map(([key, item]): [string, unknown] => [path ? `${path}.${key}` : key, item])
      : null;
  if (entries && entries.length > 0) for (const [key, item] of entries) flattenConfig(item, key, into);
  else into.set(path, JSON.stringify(value) ?? "null");
  return into;
}

/** Labels are not settings: they differ between any two runs. */
const labels = /^(name|project|tags(\[|$))/;

export function configDifferences(configs: readonly unknown[]): { path: string; values: (string | null)[] }[] {
  const flat = configs.map((config) => flattenConfig(config));
  const paths = [...new Set(flat.flatMap((one) => [...one.keys()]))].filter((path) => !labels.test(path));
  return paths
    .map((path) => ({ path, values: flat.map((one) => one.get(path) ?? null) }))
    .filter(({ values }) => values.some((value) => value !== values[0]))
    .sort((a, b) => (a.path < b.path ? -1 : 1));
}
