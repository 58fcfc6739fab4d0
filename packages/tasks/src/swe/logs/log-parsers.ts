/** Parsers of test logs by the names that data sets give them (`log_parser`). Adding one: its function and a line here. */
import { parseDjango } from "./django-log.ts";
import {
  parseMatplotlib,
  parsePydantic,
  parsePytest,
  parsePytestOptions,
  parsePytestV2,
  parsePytestVerbose,
  parseSeaborn,
} from "./pytest-logs.ts";
import type { LogParser } from "./statuses.ts";
import { parseSympy } from "./sympy-log.ts";

export const logParsers = {
  django: parseDjango,
  matplotlib: parseMatplotlib,
  pydantic: parsePydantic,
  pytest: parsePytest,
  pytest_options: parsePytestOptions,
  pytest_v2: parsePytestV2,
  pytest_verbose: parsePytestVerbose,
  seaborn: parseSeaborn,
  sympy: parseSympy,
} satisfies Record<string, LogParser>;
export type LogParserName = keyof typeof logParsers;

/** Repositories that the harness has names of their own for. */
const aliases: Readonly<Record<string, LogParserName>> = {
  astroid: "pytest",
  astropy: "pytest_v2",
  flask: "pytest",
  marshmallow: "pytest",
  pvlib: "pytest",
  pydicom: "pytest_options",
  pylint: "pytest_options",
  pytest_pydantic: "pydantic",
  pyvista: "pytest",
  requests: "pytest_options",
  scikit: "pytest_v2",
  sphinx: "pytest_v2",
  sqlfluff: "pytest",
  xarray: "pytest",
};

const isParser = (name: string): name is LogParserName => Object.hasOwn(logParsers, name);

/** With or without `parse_log_` in front; null for one that is not here. */
export function logParserNamed(given: string): LogParserName | null {
  const name = given.replace(/^parse_log_/u, "");
  if (isParser(name)) return name;
  return Object.hasOwn(aliases, name) ? (aliases[name] ?? null) : null;
}
