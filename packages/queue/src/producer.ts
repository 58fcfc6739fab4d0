/**
 * Adds jobs. A job carries ids only and is never the truth: its row was written first, and a job that could not be added is
 * found by the sweep.
 */
import { randomUUID } from "node:crypto";
import { BoundaryError } from "@rolldeck/contracts/errors";
import { type JobName, type JobPayload, jobs, type QueueName } from "@rolldeck/contracts/jobs";
import type { JobQueue, NewJob, QueueConnection } from "./connection.ts";

export type AnyJob = { [N in JobName]: { readonly name: N; readonly payload: JobPayload<N> } }[JobName];

export class Producer {
  readonly #connection: QueueConnection;
  readonly #queues = new Map<QueueName, JobQueue>();
  readonly #onError: (error: Error) => void;

  /** `onError` hears of lost connections between calls; a failing call rejects as well. */
  constructor(connection: QueueConnection, onError: (error: Error) => void = () => {}) {
    this.#connection = connection;
    this.#onError = onError;
  }

  /** @throws BoundaryError("infrastructure", "queue_unreachable") */
  async add<N extends JobName>(name: N, payload: JobPayload<N>): Promise<void> {
    const job = toNewJob(name, payload);
    await this.#send(jobs[name].queue, (queue) => queue.add(job));
  }

  /** One round trip per queue. @throws BoundaryError("infrastructure", "queue_unreachable") */
  async addMany(list: readonly AnyJob[]): Promise<void> {
    const byQueue = new Map<QueueName, NewJob[]>();
    for (const job of list) {
      const queue = jobs[job.name].queue;
      const rows = byQueue.get(queue) ?? [];
      rows.push(toNewJob(job.name, job.payload));
      byQueue.set(queue, rows);
    }
    await Promise.all([...byQueue].map(([name, rows]) => this.#send(name, (queue) => queue.addAll(rows))));
  }

  async close(): Promise<void> {
    await Promise.all([...this.#queues.values()].map((queue) => queue.close()));
    this.#queues.clear();
  }

  async #send(name: QueueName, send: (queue: JobQueue) => Promise<void>): Promise<void> {
    try {
      await send(this.#open(name));
    } catch (cause) {
      throw new BoundaryError("infrastructure", "queue_unreachable", `could not add a job to queue ${name}`, {
        cause,
        retryable: true,
      });
    }
  }

  #open(name: QueueName): JobQueue {
    const open = this.#queues.get(name);
    if (open) return open;
    const queue = this.#connection.openQueue(name, this.#onError);
    this.#queues.set(name, queue);
    return queue;
  }
}

/** Payloads are parsed on the way in as well, so that a bad one names its producer. @throws ZodError */
function toNewJob<N extends JobName>(name: N, payload: JobPayload<N>): NewJob {
  const data = jobs[name].payload.parse(payload);
  return { name, data, opts: { ...delivery, ...identity(name, data) } };
}

/** BullMQ decides delivery only: no retries of its own, nothing kept. */
const delivery = { attempts: 1, removeOnComplete: true, removeOnFail: true } as const;

function identity(name: JobName, data: Record<string, unknown>) {
  // A wake-up that arrives while the run is being reconciled must cause one more round: only this mode keeps it.
  if (name === "reconcile") return { deduplication: { id: String(data.runId), keepLastIfActive: true } };
  // Ids are for reading; a redelivery is a new job, so each carries a nonce (a known id would be ignored).
  const parts = [data.stepId ?? data.rolloutId ?? data.runId, data.attempt, data.stage ?? name];
  return { jobId: [...parts.filter((part) => part !== undefined), randomUUID().slice(0, 8)].join("-") };
}
