/** What every queue must do, run against each real server. No timing is asserted: each test waits for what must come. */
import { describe } from "vitest";
import { testDelivery } from "./delivery-conformance.ts";
import { testLoad } from "./load-conformance.ts";
import { type QueueUnderTest, useQueue } from "./queue-rig.ts";
import { testTrouble } from "./trouble-conformance.ts";
import { testWakeUps } from "./wake-up-conformance.ts";

export function describeQueue(subject: QueueUnderTest): void {
  describe(`queue on ${subject.name}`, () => {
    const rig = useQueue(subject);
    testDelivery(rig);
    testLoad(rig);
    testWakeUps(rig);
    testTrouble(rig);
  });
}
