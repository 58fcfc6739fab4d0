import type { Rolldeck } from "@rolldeck/client/rolldeck";
import { type FleetReading, RunCheckpoints } from "@rolldeck/contracts/api/checkpoints";
import { expect, test } from "vitest";
import { wakeReader } from "./wake-reader.ts";

const asleep: FleetReading = {
  ...{ state: "asleep", message: "No worker is there.", remedy: null, worker: null },
  ...{ wakeRefusal: null, canRelease: false },
};
const coming = (message: string): FleetReading => ({ ...asleep, state: "coming", message });
const ready: FleetReading = { ...asleep, state: "ready", message: "It answers." };

/** Answers in this order, the last again and again. */
function server(answers: readonly FleetReading[]) {
  const asked: string[] = [];
  let at = 0;
  const answer = (what: string) => async (): Promise<RunCheckpoints> => {
    asked.push(what);
    const fleet = answers[Math.min(at++, answers.length - 1)] ?? ready;
    return RunCheckpoints.parse({
      ...{ runId: "r", rule: {}, parent: null, checkpoints: [], children: [], restoreRefusal: null, exportFormats: [] },
      ...{ fleet, exportRefusal: fleet.state === "ready" ? null : fleet.message },
    });
  };
  const rolldeck = { readCheckpoints: answer("read"), wakeFleetReader: answer("wake") };
  return { asked, rolldeck: rolldeck as Pick<Rolldeck, "readCheckpoints" | "wakeFleetReader"> };
}
const woken = async (answers: readonly FleetReading[]) => {
  const { asked, rolldeck } = server(answers);
  const said: string[] = [];
  const outcome = await wakeReader(rolldeck, "r", { say: (line) => said.push(line), pauseMs: 0 }).then(
    () => "there",
    (error: Error) => error.message,
  );
  return { asked, said, outcome };
};

test("it is asked for once and waited for, each reason told once", async () => {
  expect(await woken([asleep, coming("waits"), coming("waits"), coming("starts"), ready])).toEqual({
    ...{ asked: ["read", "wake", "read", "read", "read"], said: ["waits", "starts"], outcome: "there" },
  });
});

test("one that is there, or on its way, is not asked for", async () => {
  expect(await woken([ready])).toEqual({ asked: ["read"], said: [], outcome: "there" });
  expect((await woken([coming("waits"), ready])).asked).toEqual(["read", "read"]);
});

test("one that is refused on its way ends the waiting with the reason", async () => {
  const refused = { ...asleep, message: "The reader needs a GPU." };
  expect(await woken([asleep, coming("waits"), refused])).toMatchObject({ outcome: "The reader needs a GPU." });
});
