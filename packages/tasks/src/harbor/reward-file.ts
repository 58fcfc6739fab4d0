/**
 * What a verifier wrote: reward.json (an object of numbers, or one number) or reward.txt (one number). In an object `true` and
 * `false` are 1 and 0, as Harbor reads them. Invariant: what is missing, empty, unreadable or no finite number is an error, never a
 * reward.
 */

import { headWithin } from "@rolldeck/agent/core/cut-text";
import { BoundaryError } from "@rolldeck/contracts/errors";

/** By key; a lone number is the one of `reward`. */
export type Rewards = Readonly<Record<string, number>>;

const maxKeys = 200;
/** Longer than any number that a program prints. */
const maxNumberLength = 1000;

/** @throws BoundaryError("verifier", "bad_reward") */
export function parseRewardJson(bytes: Uint8Array): Rewards {
  const text = decode(bytes, "reward.json");
  let value: unknown;
  try {
    // JSON has no NaN or Infinity; 1e999 is read as Infinity, and refused below.
    value = JSON.parse(text);
  } catch (cause) {
    throw bad(`reward.json is no JSON: ${text.trim() === "" ? "it is empty" : shown(text)}`, cause);
  }
  if (typeof value === "number") return { reward: finite(value, "reward.json") };
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw bad(`reward.json is neither a number nor an object of numbers: ${shown(text)}`);
  }
  const entries = Object.entries(value);
  if (entries.length === 0) throw bad("reward.json is an empty object");
  if (entries.length > maxKeys) throw bad(`reward.json has more than ${maxKeys} keys`);
  return Object.fromEntries(entries.map(([key, inner]) => [key, numberOf(inner, key)]));
}

function numberOf(value: unknown, key: string): number {
  if (typeof value === "boolean") return value ? 1 : 0;
  if (typeof value !== "number") throw bad(`reward.json: ${key} is no number`);
  return finite(value, `reward.json: ${key}`);
}

/** @throws BoundaryError("verifier", "bad_reward") */
export function parseRewardText(bytes: Uint8Array): Rewards {
  const text = decode(bytes, "reward.txt").trim();
  if (text === "") throw bad("reward.txt is empty");
  // Number() would take "0x10" and "Infinity", which no verifier means. The file may hold a megabyte of anything: every character
  // is read once.
  if (text.length > maxNumberLength || !/^[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:e[+-]?[0-9]{1,3})?$/iu.test(text)) {
    throw bad(`reward.txt is no number: ${shown(text)}`);
  }
  return { reward: finite(Number(text), "reward.txt") };
}

function decode(bytes: Uint8Array, file: string): string {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch (cause) {
    throw bad(`${file} is no UTF-8`, cause);
  }
}

function finite(value: number, what: string): number {
  if (Number.isFinite(value)) return value;
  throw bad(`${what} is no finite number`);
}

const shown = (text: string): string => JSON.stringify(headWithin(text.trim(), 80));
const bad = (message: string, cause?: unknown): BoundaryError =>
  new BoundaryError("verifier", "bad_reward", message, { cause });

/** @throws BoundaryError("verifier", "no_reward") when the key is not there */
export function rewardOf(rewards: Rewards, key: string): number {
  const reward = Object.hasOwn(rewards, key) ? rewards[key] : undefined;
  if (reward !== undefined) return reward;
  const keys = Object.keys(rewards).join(", ");
  throw new BoundaryError("verifier", "no_reward", `the verifier wrote no ${key}, but ${keys}`);
}
