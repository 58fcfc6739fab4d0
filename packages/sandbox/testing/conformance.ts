/**
 * What every runtime must do, as one suite. A runtime runs it with how it is made and what it can't do; where it can't, the suite
 * asks that it says so. Needs no more of an image (or of the machine, where there is none) than sh, coreutils, bash and Python 3.
 */
import { afterAll, beforeAll, describe } from "vitest";
import { commandCases } from "./conformance/commands.ts";
import { endCases } from "./conformance/ends.ts";
import { escapeCases } from "./conformance/escapes.ts";
import { fileCases } from "./conformance/files.ts";
import { lifeCases } from "./conformance/lives.ts";
import { resetCases } from "./conformance/resets.ts";
import { type ConformanceFacts, ConformanceScene, type MakeRuntime } from "./conformance/scene.ts";
import { talkCases } from "./conformance/talks.ts";

export type { ConformanceFacts, MakeRuntime };

/** @param makeRuntime called several times: each is another process's view of the deployment that it is given */
export function describeConformance(name: string, makeRuntime: MakeRuntime, facts: ConformanceFacts): void {
  describe(`${name} sandboxes`, () => {
    const scene = new ConformanceScene(facts, makeRuntime);
    beforeAll(() => scene.start());
    afterAll(() => scene.end());
    commandCases(scene);
    endCases(scene);
    talkCases(scene);
    fileCases(scene);
    lifeCases(scene);
    if (facts.resets) resetCases(scene);
    escapeCases(scene);
  });
}
