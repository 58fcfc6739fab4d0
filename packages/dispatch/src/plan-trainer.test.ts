import { runStatuses } from "@rolldeck/contracts/lifecycle";
import { endedTrainerJobStates, type trainerJobStates } from "@rolldeck/contracts/trainer-jobs";
import { expect, test } from "vitest";
import { pausesAtEnd, planTrainer } from "./plan-trainer.ts";

const job = (state: (typeof trainerJobStates)[number], attempt = 1) => ({ attempt, state });

test("one is launched when the run is prepared, and the next when a run goes on whose trainer has ended", () => {
  for (const status of ["preparing", "running"] as const) {
    expect(planTrainer({ status, job: null })).toEqual({ do: "launch", attempt: 1 });
    for (const state of endedTrainerJobStates)
      expect(planTrainer({ status, job: job(state, 2) })).toEqual({ do: "launch", attempt: 3 });
  }
  for (const status of runStatuses.filter((status) => status !== "preparing" && status !== "running")) {
    expect(planTrainer({ status, job: null })).toBeNull();
    for (const state of endedTrainerJobStates) expect(planTrainer({ status, job: job(state) })).toBeNull();
  }
});

test("one that lives is looked at while its run lives, is stopped with it, and may end by itself after its last step", () => {
  for (const state of ["pending", "running"] as const) {
    for (const status of ["queued", "preparing", "running", "pausing", "paused", "completed"] as const)
      expect(planTrainer({ status, job: job(state) })).toEqual({ do: "look" });
    for (const status of ["stopping", "stopped", "failed"] as const)
      expect(planTrainer({ status, job: job(state) })).toEqual({ do: "stop" });
  }
});

test("a submission without an answer is sent again, but not for a run that waits or is over", () => {
  expect(planTrainer({ status: "running", job: job("submitting") })).toEqual({ do: "submit" });
  expect(planTrainer({ status: "paused", job: job("submitting") })).toEqual({ do: "look" });
  expect(planTrainer({ status: "stopping", job: job("submitting") })).toEqual({ do: "stop" });
});

test("its end pauses a run that goes on, no other, and a queued one only later", () => {
  const pausing = runStatuses.filter((status) => pausesAtEnd(status) === true);
  expect(pausing).toEqual(["preparing", "running"]);
  expect(pausesAtEnd("queued")).toBeNull();
});
