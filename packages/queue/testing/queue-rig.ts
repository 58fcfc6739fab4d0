/** What the queue tests share: a real server, a connection and a producer for each test, and consumers that end with it. */
import { setTimeout as sleep } from "node:timers/promises";
import type { QueueName, StageJob } from "@rolldeck/contracts/jobs";
import { afterAll, afterEach, beforeAll, beforeEach } from "vitest";
import type { QueueConnection } from "../src/connection.ts";
import { Consumer, type ConsumerOptions } from "../src/consumer.ts";
import { Producer } from "../src/producer.ts";
import type { RestartableServer } from "./postgres.ts";

export interface QueueUnderTest {
  readonly name: string;
  start(): Promise<RestartableServer>;
  /** A fresh connection, as another process would open one. `close` also ends what `connect` opened. */
  connect(server: RestartableServer): Promise<QueueConnection>;
  /** Jobs that the server still keeps of a queue, in whatever state. */
  stored(server: RestartableServer, queue: QueueName): Promise<number>;
}

export const stageJob = (rolloutId: string, stage: StageJob["stage"] = "run"): StageJob => ({
  runId: "run1",
  rolloutId,
  attempt: 1,
  stage,
});

/** Waits until `check` holds. */
export async function until(check: () => boolean | Promise<boolean>, what: string): Promise<void> {
  const deadline = Date.now() + 75_000;
  while (!(await check())) {
    if (Date.now() > deadline) throw new Error(`never happened: ${what}`);
    await sleep(10);
  }
}

export interface QueueRig {
  readonly subject: QueueUnderTest;
  readonly server: RestartableServer;
  readonly connection: QueueConnection;
  readonly producer: Producer;
  /** What the present test's producer and consumers reported. */
  readonly errors: Error[];
  /** A consumer that is closed with the test. */
  consume(options: Pick<ConsumerOptions, "queue" | "handle"> & Partial<ConsumerOptions>): Consumer;
}

/** Inside a `describe`. */
export function useQueue(subject: QueueUnderTest): QueueRig {
  let server: RestartableServer;
  let connection: QueueConnection;
  let producer: Producer;
  let errors: Error[];
  const open: Consumer[] = [];
  beforeAll(async () => {
    server = await subject.start();
  });
  afterAll(() => server?.remove());
  beforeEach(async () => {
    errors = [];
    connection = await subject.connect(server);
    producer = new Producer(connection, (error) => errors.push(error));
  });
  afterEach(async () => {
    await Promise.all(open.splice(0).map((consumer) => consumer.close(5000)));
    await producer.close();
    await connection.close();
  });
  return {
    subject,
    get server() {
      return server;
    },
    get connection() {
      return connection;
    },
    get producer() {
      return producer;
    },
    get errors() {
      return errors;
    },
    consume: (options) => {
      const consumer = new Consumer(connection, {
        concurrency: 8,
        onError: (error) => errors.push(error),
        ...options,
      });
      consumer.start();
      open.push(consumer);
      return consumer;
    },
  };
}
