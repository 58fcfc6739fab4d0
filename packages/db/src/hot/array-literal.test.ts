import fc from "fast-check";
import { expect, test } from "vitest";
import { createTestDatabase } from "../../testing/postgres.ts";
import { arrayLiteral } from "./array-literal.ts";
import { cleanText } from "./clean-text.ts";

test("Postgres reads back what was written, whatever the texts hold", async () => {
  const { pool, drop } = await createTestDatabase();
  const text = fc
    .string({ unit: fc.integer({ min: 0, max: 0xffff }).map((unit) => String.fromCharCode(unit)) })
    .map(cleanText);
  const odd = fc.constantFrom("", "NULL", "{}", '"', "\\", "a,b", " x ", "\n\t", '\\"\u0001', "🙂");
  await fc.assert(
    fc.asyncProperty(fc.array(fc.option(fc.oneof(text, odd)), { maxLength: 30 }), async (values) => {
      const { rows } = await pool.query("select $1::text[] as texts", [arrayLiteral(values)]);
      expect(rows[0].texts).toEqual(values);
    }),
    { numRuns: 100 },
  );
  const numbers = [1, -2.5, null, Number.NaN, Number.POSITIVE_INFINITY, 1e300];
  const { rows } = await pool.query("select $1::float8[] as numbers", [arrayLiteral(numbers)]);
  expect(rows[0].numbers).toEqual(numbers);
  await drop();
});
