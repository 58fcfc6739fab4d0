/** What of a rollout is looked at; the address has it. */
export const panes = ["turns", "patch", "tests", "output", "timing", "sandboxes"] as const;
export type Pane = (typeof panes)[number];
export const paneLabels: Readonly<Record<Pane, string>> = {
  turns: "Turns",
  patch: "Patch",
  tests: "Tests",
  output: "Output",
  timing: "Timing",
  sandboxes: "Sandboxes",
};
