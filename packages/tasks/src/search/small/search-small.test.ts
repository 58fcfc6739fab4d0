import type { FinishedRollout, Split, Task } from "@rolldeck/contracts/ports/task";
import { localSearch } from "@rolldeck/tools/local-search";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { searchSmallDemonstrations } from "./demonstrations.ts";
import { askedChain, askedPerWorld } from "./instances.ts";
import { searchSmall } from "./task.ts";
import { namesPerWorld, searchWorld, splitOf } from "./world.ts";

const split = fc.constantFrom<Split>("train", "evaluate");
const index = fc.integer({ min: 0, max: 2 ** 31 - 1 });

/** What the tool tells a rollout of this instance. */
async function searched(task: Task, at: { split: Split; index: number }, query: string): Promise<string> {
  const agent = { turn: 0, maxTurns: 6, contextTokens: 0, maxContextTokens: 384, calls: [] };
  const context = { agent, signal: new AbortController().signal, deadlineMs: 1000 };
  const { state } = task.instance(at.split, at.index);
  return (await localSearch.call({ query }, { ...context, instance: state })).output;
}

const finished = (finalAnswer: string | null): FinishedRollout => ({
  ending: "finish_tool",
  finalAnswer,
  turns: 1,
  toolCalls: [],
});
const scene = { signal: new AbortController().signal, judge: null };

describe("worlds", () => {
  test("are 200 documents on 174 names and 26 places, the same whenever and wherever they are made", () => {
    fc.assert(
      fc.property(split, index, (s, number) => {
        const { chains, documents } = searchWorld(s, number);
        expect(searchWorld(s, number)).toEqual({ chains, documents });
        expect(chains).toHaveLength(namesPerWorld);
        expect(documents).toHaveLength(200);
        expect(new Set(documents.map(({ title }) => title.toLowerCase())).size).toBe(200);
        expect(new Set(documents.map(({ id }) => id)).size).toBe(200);
        for (const { name, place, code } of chains) {
          expect(`${name} ${place} ${code}`).toMatch(/^[a-n][m-z] [A-Z] [0-9]$/);
        }
      }),
      { numRuns: 20 },
    );
    // Fixed for good: a stored run's instances must not change under it.
    expect(askedChain("train", 0).chain).toMatchInlineSnapshot(`
      {
        "code": "8",
        "name": "jy",
        "place": "C",
      }
    `);
    expect(askedChain("evaluate", 255).chain).toMatchInlineSnapshot(`
      {
        "code": "4",
        "name": "nq",
        "place": "X",
      }
    `);
  });

  test("no document of a world holds both a name and a code, and each chain is told by two", () => {
    const { chains, documents } = searchWorld("train", 3);
    const facts = documents.map(({ title, text }) => `${title}: ${text}`);
    expect(facts.filter((fact) => /[a-z]{2}/.test(fact) && /[0-9]/.test(fact))).toEqual([]);
    for (const { name, place, code } of chains) {
      expect(facts).toContain(`${name}: ${place}`);
      expect(facts).toContain(`${place}: ${code}`);
    }
  });

  test("the splits are disjoint: a chain is only in its own split's worlds", () => {
    fc.assert(
      fc.property(split, index, (s, number) => {
        expect(searchWorld(s, number).chains.every((chain) => splitOf(chain) === s)).toBe(true);
      }),
      { numRuns: 20 },
    );
  });

  test("codes are spread evenly, so that guessing pays about 10 %", () => {
    const codes = Array.from({ length: 4000 }, (_, i) => askedChain("evaluate", i).chain.code);
    for (let digit = 0; digit <= 9; digit++) {
      const share = codes.filter((code) => code === String(digit)).length / codes.length;
      expect(Math.abs(share - 0.1)).toBeLessThan(0.025);
    }
  });
});

describe("instances", () => {
  test("the name leads to its place and the place to its code, with the tool itself", async () => {
    await fc.assert(
      fc.asyncProperty(split, index, async (s, i) => {
        const { name, place, code } = askedChain(s, i).chain;
        const at = { split: s, index: i };
        expect(await searched(searchSmall, at, name)).toMatch(new RegExp(`^\\[[a-z]{2}\\] ${name}: ${place}$`));
        expect(await searched(searchSmall, at, place)).toMatch(new RegExp(`^\\[[a-z]{2}\\] ${place}: ${code}$`));
        const verdict = await searchSmall.verify(searchSmall.instance(s, i), finished(code), scene);
        expect(verdict).toEqual({ reward: 1, success: true, parts: { answer: 1 }, notes: null });
      }),
      { numRuns: 30 },
    );
  });

  test("the model is told the name and nothing else", () => {
    const { name } = askedChain("train", 5).chain;
    expect(searchSmall.messages(searchSmall.instance("train", 5))).toEqual([{ role: "user", content: `find ${name}` }]);
  });

  test("have no end and no negative index; eight share a world", () => {
    expect(searchSmall.size("train")).toBeNull();
    expect(searchSmall.instance("train", 2 ** 31 - 1).instanceId).toBe("train-2147483647");
    expect(() => searchSmall.instance("train", -1)).toThrow(RangeError);
    expect(() => searchSmall.instance("train", 0.5)).toThrow(RangeError);
    expect(askedChain("train", 0).world).toBe(askedChain("train", askedPerWorld - 1).world);
    expect(askedChain("train", 0).world).not.toEqual(askedChain("train", askedPerWorld).world);
  });

  test("with the tool off every search finds nothing; the question is the same", async () => {
    const off = await searchSmall.open?.({ dataset: null, options: { toolOff: true } });
    const on = await searchSmall.open?.({ dataset: null, options: {} });
    if (!off || !on) throw new Error("not opened");
    const { name, place } = askedChain("evaluate", 9).chain;
    const at = { split: "evaluate", index: 9 } as const;
    expect(await searched(off, at, name)).toBe("no results");
    expect(await searched(off, at, place)).toBe("no results");
    expect(await searched(on, at, name)).toContain(place);
    const [a, b] = [off, on].map((task) => task.messages(task.instance("evaluate", 9)));
    expect(a).toEqual(b);
  });

  test("other options and data sets are refused by name", async () => {
    await expect(searchSmall.open?.({ dataset: null, options: { toolof: true } })).rejects.toThrow(/options.toolof/);
    await expect(searchSmall.open?.({ dataset: "/x", options: {} })).rejects.toThrow(/dataset/);
  });
});

describe("verifier", () => {
  test("a wrong answer, a place or none earns 0 and says what it was", async () => {
    const { place, code } = askedChain("train", 1).chain;
    const instance = searchSmall.instance("train", 1);
    const other = code === "0" ? "1" : "0";
    for (const answer of [place, other, null, "", `${code}${code}`, "constructor"]) {
      const verdict = await searchSmall.verify(instance, finished(answer), scene);
      expect(verdict).toMatchObject({ reward: 0, success: false, parts: { answer: 0 } });
      expect(verdict.notes).toContain(code);
    }
  });
  test("grading that can't be done is an error, never a 0", async () => {
    const instance = { ...searchSmall.instance("train", 1), state: {} };
    await expect(searchSmall.verify(instance, finished("1"), scene)).rejects.toMatchObject({ boundary: "verifier" });
  });
});

describe("demonstrations", () => {
  test("are the same for a seed, others for another, and a longer list starts with the shorter", () => {
    expect(searchSmallDemonstrations(7, 25)).toEqual(searchSmallDemonstrations(7, 25));
    expect(searchSmallDemonstrations(7, 25)).not.toEqual(searchSmallDemonstrations(8, 25));
    expect(searchSmallDemonstrations(7, 25).slice(0, 12)).toEqual(searchSmallDemonstrations(7, 12));
  });

  test("asked for a name, three in ten reach the code and the others answer the place they saw; a third ask for a place", () => {
    const demonstrations = searchSmallDemonstrations(1, 150);
    const asked = demonstrations.map(({ messages }) => messages[0]?.content ?? "");
    const answers = demonstrations.map(({ turns }) => String(turns.at(-1)?.calls[0]?.arguments.answer));
    expect(asked.filter((question) => /^find [A-Z]$/.test(question))).toHaveLength(50);
    expect(answers.filter((answer, at) => /^[0-9]$/.test(answer) && /find [a-z]/.test(asked[at] ?? ""))).toHaveLength(
      30,
    );
    for (const [at, { turns }] of demonstrations.entries()) {
      const searches = turns.slice(0, -1);
      expect(asked[at]).toBe(`find ${searches[0]?.calls[0]?.arguments.query}`);
      for (const [n, { outputs }] of searches.entries()) {
        const next = searches[n + 1]?.calls[0]?.arguments.query ?? answers[at];
        expect(outputs[0]).toMatch(new RegExp(`\\] ${searches[n]?.calls[0]?.arguments.query}: ${next}$`));
      }
    }
  });
});
