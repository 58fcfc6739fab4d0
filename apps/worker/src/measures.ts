/** What a worker process measures of itself, for Prometheus. */
import { Counter, Gauge, Histogram, Registry } from "prom-client";

export function createMeasures() {
  const registry = new Registry();
  const registers = [registry];
  return {
    registry,
    activeStages: new Gauge({
      name: "rolldeck_worker_active_stages",
      help: "Rollout stages this process works on",
      labelNames: ["stage"] as const,
      registers,
    }),
    stageFailures: new Counter({
      name: "rolldeck_worker_stage_failures_total",
      help: "Stages given back with a counted failure",
      labelNames: ["stage"] as const,
      registers,
    }),
    lateDeliveries: new Counter({
      name: "rolldeck_worker_late_deliveries_total",
      help: "Stage jobs that found their stage taken or over",
      labelNames: ["stage"] as const,
      registers,
    }),
    plans: new Counter({
      name: "rolldeck_worker_plans_total",
      help: "Plans made, by what asked for them",
      labelNames: ["by"] as const,
      registers,
    }),
    planSeconds: new Histogram({
      name: "rolldeck_worker_plan_seconds",
      help: "From reading the snapshot to enqueued jobs",
      buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5],
      registers,
    }),
    samplingWaitSeconds: new Counter({
      name: "rolldeck_worker_sampling_wait_seconds_total",
      help: "Time that samples were held up by what model servers said, summed over rollouts",
      registers,
    }),
    updateSeconds: new Histogram({
      name: "rolldeck_worker_update_seconds",
      help: "From the claim of an update until its version serves",
      buckets: [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300],
      registers,
    }),
  };
}
export type Measures = ReturnType<typeof createMeasures>;
