import { InputError } from "@rolldeck/contracts/errors";
import type { TrainingDatum } from "@rolldeck/contracts/ports/backend";
import { Datum } from "@rolldeck/contracts/wire/tinker";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { lossInput } from "./datums.ts";
import { dialects } from "./dialects.ts";

// Prompt [1, 2, 3], response [10, 11]: shifted by one.
const datum: TrainingDatum = {
  inputs: [1, 2, 3, 10],
  targets: [2, 3, 10, 11],
  logprobs: [0, 0, -0.1, -0.2],
  advantages: [0, 0, 0.5, 0.5],
  weights: [0, 0, 1, 1],
};
const ppo = { name: "ppo", config: { clip_low_threshold: 0.8, clip_high_threshold: 1.28 } };
const Input = z.object({ data: z.array(Datum), loss_fn: z.string(), loss_fn_config: z.record(z.string(), z.number()) });
const parse = (text: string) => Input.parse(JSON.parse(text));

/** As SkyRL's JAX backend adds up an update: Σ over rows of (Σ tokens ÷ Σ weights) ÷ rows. */
const reducedBy = (rows: readonly Datum[]): number => {
  const sum = (values: readonly number[] = []) => values.reduce((a, b) => a + b, 0);
  const means = rows.map(
    ({ loss_fn_inputs: { advantages, weights } }) => sum(advantages?.data) / sum(weights?.data) / rows.length,
  );
  return sum(means);
};

describe("a training row on the wire", () => {
  test("is shifted already: inputs, and every tensor aligned to the targets", () => {
    const [row] = parse(lossInput([datum], ppo, dialects.rolldeck)).data;
    expect(row?.model_input.chunks).toEqual([{ type: "encoded_text", tokens: [1, 2, 3, 10] }]);
    expect(row?.loss_fn_inputs).toEqual({
      target_tokens: { data: [2, 3, 10, 11], dtype: "int64", shape: [4] },
      logprobs: { data: [0, 0, -0.1, -0.2], dtype: "float32", shape: [4] },
      advantages: { data: [0, 0, 0.5, 0.5], dtype: "float32", shape: [4] },
      weights: { data: [0, 0, 1, 1], dtype: "float32", shape: [4] },
    });
  });

  test("the hosted service takes no weights beside advantages", () => {
    const [row] = parse(lossInput([datum], ppo, dialects.hosted)).data;
    expect(Object.keys(row?.loss_fn_inputs ?? {})).toEqual(["target_tokens", "logprobs", "advantages"]);
  });

  test("with other terms in the loss the weights carry the denominator, for all of them", () => {
    const own = { ...datum, scale: 0.25, refLogprobs: [0, 0, -0.3, -0.4] };
    const kl = { name: "ppo", config: { ...ppo.config, kl_coef: 0.1 } };
    const [row] = parse(lossInput([own], kl, dialects.rolldeck)).data;
    expect(row?.loss_fn_inputs.weights?.data).toEqual([0, 0, 0.25, 0.25]);
    expect(row?.loss_fn_inputs.advantages?.data).toEqual([0, 0, 2, 2]);
    expect(row?.loss_fn_inputs.ref_logprobs?.data).toEqual([0, 0, -0.3, -0.4]);
    const [plain] = parse(lossInput([own], ppo, dialects.rolldeck)).data;
    expect(plain?.loss_fn_inputs.weights?.data).toEqual([0, 0, 1, 1]);
    expect(plain?.loss_fn_inputs.ref_logprobs).toBeUndefined();
  });

  test("supervised rows carry targets and weights alone", () => {
    const [row] = parse(lossInput([datum], { name: "cross_entropy", config: {} }, dialects.rolldeck)).data;
    expect(Object.keys(row?.loss_fn_inputs ?? {})).toEqual(["target_tokens", "weights"]);
  });

  test("means of means are undone: what the server divides by is multiplied in", () => {
    const other: TrainingDatum = { ...datum, weights: [0, 1, 1, 1], advantages: [0, 1, 1, 1] };
    const rows = parse(lossInput([datum, other], ppo, dialects.skyrl)).data;
    expect(reducedBy(rows)).toBeCloseTo(0.5 * 2 + 3, 12);
  });

  test("in several requests of one update too, which the server divides by the data of all of them", () => {
    const loss = { ...ppo, datums: 3 };
    const requests = [[datum], [datum, datum]].map((data) => lossInput(data, loss, dialects.skyrl));
    expect(requests.every((text) => !text.includes("datums"))).toBe(true);
    expect(reducedBy(requests.flatMap((text) => parse(text).data))).toBeCloseTo(3 * 0.5 * 2, 12);
  });
});

describe("refused before it is sent", () => {
  test.each(["targets", "logprobs", "advantages", "weights"] as const)("%s of another length", (name) => {
    const broken = { ...datum, [name]: datum[name].slice(1) };
    expect(() => lossInput([datum, broken], ppo, dialects.rolldeck)).toThrow(`data[1].${name}`);
  });

  test.each([Number.NaN, Number.POSITIVE_INFINITY])("a value of %s", (value) => {
    const broken = { ...datum, advantages: [0, 0, value, 0] };
    expect(() => lossInput([broken], ppo, dialects.rolldeck)).toThrow(InputError);
  });

  test("a loss setting that the server would ignore", () => {
    const dual = { name: "ppo", config: { ...ppo.config, dual_clip_c: 3 } };
    expect(() => lossInput([datum], dual, dialects.hosted)).toThrow(/dual_clip_c/);
    const warm = { name: "ppo", config: { ...ppo.config, temperature: 0.7 } };
    expect(() => lossInput([datum], warm, dialects.hosted)).toThrow(/temperature/);
  });

  test("but not hints, nor the temperature it has anyway", () => {
    const common = { name: "ppo", config: { ...ppo.config, temperature: 1, micro_batch_tokens: 4096 } };
    expect(parse(lossInput([datum], common, dialects.hosted)).loss_fn_config).toEqual(ppo.config);
    expect(parse(lossInput([datum], common, dialects.rolldeck)).loss_fn_config).toEqual(common.config);
  });
});
