import type { FinishedRollout, Split, Task } from "@rolldeck/contracts/ports/task";
import { localSearch } from "@rolldeck/tools/local-search";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { searchSmallDemonstrations } from "./demonstrations.ts";
import { askedChain, askedPerWorld } from "./instances.ts";
import { searchSmall } from "./task.ts";
import { chainsPerWorld, searchWorld, splitOf } from "./world.ts";

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
  test("are 200 documents of 200 different pairs of letters, the same whenever and wherever they are made", () => {
    fc.assert(
      fc.property(split, index, (s, number) => {
        const { chains, documents } = searchWorld(s, number);
        expect(searchWorld(s, number)).toEqual({ chains, documents });
        expect(chains).toHaveLength(chainsPerWorld);
        expect(documents).toHaveLength(200);
        expect(new Set(chains.flatMap(({ name, place }) => [name, place.toLowerCase()])).size).toBe(200);
        expect(new Set(documents.map(({ id }) => id)).size).toBe(200);
        for (const { name, place, code } of chains) {
          expect(`${name} ${place} ${code}`).toMatch(/^[a-m][n-z] [N-Z][A-M] [0-9]{2}$/);
        }
      }),
      { numRuns: 20 },
    );
    // Fixed for good: a stored run's instances must not change under it.
    expect(askedChain("train", 0).chain).toMatchInlineSnapshot(`
      {
        "code": "08",
        "name": "mu",
        "place": "TB",
      }
    `);
    expect(askedChain("evaluate", 255).chain).toMatchInlineSnapshot(`
      {
        "code": "65",
        "name": "ms",
        "place": "ZG",
      }
    `);
  });

  test("no document of a world holds both a name and its code", () => {
    const { chains, documents } = searchWorld("train", 3);
    for (const { name, place, code } of chains) {
      expect(documents.filter(({ text }) => text.includes(name)).map(({ text }) => text)).not.toContain(
        `${name}:${code}`,
      );
      expect(documents.some(({ text }) => text === `${name}:${place}`)).toBe(true);
      expect(documents.some(({ text }) => text === `${place}:${code}`)).toBe(true);
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

  test("codes are spread evenly, so that guessing pays about 1 %", () => {
    const codes = Array.from({ length: 200 }, (_, n) =>
      searchWorld("evaluate", n).chains.map(({ code }) => code),
    ).flat();
    const counts = new Map<string, number>();
    for (const code of codes) counts.set(code, (counts.get(code) ?? 0) + 1);
    expect(counts.size).toBe(100);
    expect(Math.max(...counts.values()) / codes.length).toBeLessThan(0.015);
  });
});

describe("instances", () => {
  test("the name leads to its place and the place to its code, with the tool itself", async () => {
    await fc.assert(
      fc.asyncProperty(split, index, async (s, i) => {
        const { name, place, code } = askedChain(s, i).chain;
        const at = { split: s, index: i };
        expect(await searched(searchSmall, at, name)).toMatch(new RegExp(`^\\[\\w+\\] ${name}:${place}$`));
        const lines = (await searched(searchSmall, at, place)).split("\n").map((line) => line.replace(/^\[\w+\] /, ""));
        expect(lines.sort()).toEqual([`${name}:${place}`, `${place}:${code}`].sort());
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
    for (const answer of [place, null, "", `${code}${code}`, "constructor"]) {
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

  test("three in ten reach the code; the others answer the place they saw", () => {
    const demonstrations = searchSmallDemonstrations(1, 100);
    const answers = demonstrations.map(({ turns }) => String(turns.at(-1)?.calls[0]?.arguments.answer));
    expect(answers.filter((answer) => /^[0-9]{2}$/.test(answer))).toHaveLength(30);
    for (const [at, { turns, messages }] of demonstrations.entries()) {
      const searches = turns.slice(0, -1);
      expect(messages[0]?.content).toBe(`find ${searches[0]?.calls[0]?.arguments.query}`);
      const last = searches.at(-1);
      expect(last?.outputs[0]).toContain(`${last?.calls[0]?.arguments.query}:${answers[at]}`);
    }
  });
});
