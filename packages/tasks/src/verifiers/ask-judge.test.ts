import type { Judge } from "@rolldeck/contracts/ports/task";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { askJudge, judgeMessages, readJudgement } from "./ask-judge.ts";

describe("judge", () => {
  const asked = { question: "Who?", answer: "Ada", accepted: ["Ada Lovelace"] };
  const saying = (reply: string): Judge => ({ ask: async () => reply });
  const scene = (judge: Judge | null) => ({ signal: new AbortController().signal, judge });

  test.each([
    ["CORRECT", true],
    [" correct.\n", true],
    ["Incorrect", false],
  ])("%j is a judgement", async (reply, right) => {
    expect(await askJudge(asked, scene(saying(reply)))).toBe(right);
  });

  test.each(["", "yes", "CORRECT INCORRECT", "not correct", "The answer is CORRECT", "**CORRECT**", "CORRECT!", "0"])(
    "%j is none, and no reward either",
    (reply) => {
      expect(() => readJudgement(reply)).toThrow(
        expect.objectContaining({ boundary: "verifier", code: "unclear_judge" }),
      );
    },
  );

  test("without a judge grading fails; a judge's own failure passes through", async () => {
    await expect(askJudge(asked, scene(null))).rejects.toMatchObject({ boundary: "verifier", code: "no_judge" });
    const failing: Judge = { ask: () => Promise.reject(new Error("gone")) };
    await expect(askJudge(asked, scene(failing))).rejects.toThrow("gone");
  });

  test("what the agent wrote stays one JSON string, whatever it holds", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), (answer) => {
        const [, user] = judgeMessages({ ...asked, answer });
        expect(JSON.parse(user?.content ?? "")).toEqual({
          question: "Who?",
          right_answers: ["Ada Lovelace"],
          given_answer: answer.slice(0, 4000),
        });
      }),
    );
    const [, long] = judgeMessages({ ...asked, answer: "x".repeat(1_000_000) });
    expect(long?.content.length).toBeLessThan(5_000);
  });
});
