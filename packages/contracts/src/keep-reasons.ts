/** Why a checkpoint stays. `last` and `best` are the run's own rule; the others hold whatever that rule says. */
export const keepReasons = [
  /** What a run goes on from after a crash. */
  "newest",
  "last",
  "best",
  "pinned",
  /** Another run began, or is to begin, with it. */
  "parent",
  "served",
  /** What the run itself began with. */
  "start",
  /** It may turn out to be among the best: its measurement is under way. */
  "measure-awaited",
] as const;
export type KeepReason = (typeof keepReasons)[number];
