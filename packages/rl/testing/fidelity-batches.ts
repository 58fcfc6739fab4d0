/**
 * Batches on which our numbers are compared with those of other packages: the vectors of the formulas that we hold to, and
 * fifty random ones. Seeded, so that the committed file can be made again; every value has four decimals, so that each
 * language reads the same float64.
 *
 * Each random batch has an all-masked row, a group of one, a group without spread, rows of unequal length (some with a
 * masked gap, as tool output leaves one), ratios beyond both clips and beyond the dual clip, and advantages of both signs.
 */
export interface FidelityBatch {
  readonly name: string;
  /** Null: written by hand. */
  readonly seed: number | null;
  /** Group of each row; rows of one group lie beside each other. */
  readonly groups: readonly number[];
  readonly rewards: readonly number[];
  /** What the losses are given, whatever any estimator makes of the rewards. */
  readonly advantages: readonly number[];
  /** Rows × T, padded at the right with 0. */
  readonly mask: readonly (readonly number[])[];
  readonly new: readonly (readonly number[])[];
  readonly old: readonly (readonly number[])[];
  readonly rollout: readonly (readonly number[])[];
  readonly ref: readonly (readonly number[])[];
}

/** Bounds of the ratio, and c of the dual clip, that every comparison uses. */
export const fidelityClip = { low: 0.8, high: 1.28, dual: 3 } as const;
/** L of the constant normaliser. */
export const fidelityNormaliser = 4;
const randomBatches = 50;

type Random = () => number;

/** mulberry32: small, and the same in every engine. */
function seeded(seed: number): Random {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Four decimals; never −0, which JSON would not keep. */
const rounded = (value: number): number => Math.round(value * 1e4) / 1e4 + 0;
const whole = (random: Random, low: number, high: number): number => low + Math.floor(random() * (high - low + 1));
const within = (random: Random, low: number, high: number): number => low + (high - low) * random();
/** A sum of uniforms: close enough to normal, and no function that engines round differently. */
const bell = (random: Random): number => random() + random() + random() + random() - 2;

interface Row {
  group: number;
  reward: number;
  advantage: number;
  masked: boolean;
}

/** Group 0 is a group of one, group 1 has no spread, the others have spread; the last has the all-masked row. */
function drawRows(random: Random): Row[] {
  const groups = whole(random, 3, 5);
  const rows: Row[] = [];
  for (let group = 0; group < groups; group++) {
    const size = group === 0 ? 1 : group === groups - 1 ? whole(random, 3, 4) : whole(random, 2, 4);
    const binary = random() < 0.4;
    const same = rounded(random());
    for (let member = 0; member < size; member++) {
      // The first is above its group's mean and the second below it, whatever the others are.
      const drawn = rounded(member === 0 ? within(random, 0.5, 1) : within(random, 0, member === 1 ? 0.1 : 1));
      const reward = binary ? (member === 0 ? 1 : member === 1 ? 0 : whole(random, 0, 1)) : drawn;
      rows.push({
        group,
        reward: group === 1 ? same : reward,
        advantage: 0,
        masked: group === groups - 1 && member === size - 1,
      });
    }
  }
  for (const row of rows) {
    const others = rows.filter(({ group }) => group === row.group);
    const mean = others.reduce((sum, other) => sum + other.reward, 0) / others.length;
    row.advantage = rounded(others.length > 1 ? ((row.reward - mean) * others.length) / (others.length - 1) : 0);
  }
  return rows;
}

/** 1 for the tokens that are trained: a turn, then perhaps a gap and another turn. */
function drawMask(random: Random, length: number, masked: boolean): number[] {
  const gap = length >= 5 && random() < 0.4 ? { start: whole(random, 1, 2), size: whole(random, 1, 2) } : null;
  return Array.from({ length }, (_, t) => {
    if (masked) return 0;
    return gap !== null && t >= gap.start && t < gap.start + gap.size ? 0 : 1;
  });
}

/** What new − old of a row's first tokens is forced to: below the low clip, above the high one, above the dual clip. */
const forced = [-0.5, 0.6, 1.3] as const;

interface Logprobs {
  readonly new: number;
  readonly old: number;
  readonly rollout: number;
  readonly ref: number;
}

function drawLogprobs(random: Random, force: number | undefined): Logprobs {
  const old = rounded(within(random, -4, force === undefined ? -0.4 : -1.6));
  const delta = force ?? 0.25 * bell(random);
  const current = rounded(Math.min(old + delta + within(random, -0.05, 0.05), -0.0001));
  // Mostly another engine's arithmetic; sometimes an older policy.
  const gap = random() < 0.15 ? 1.2 * bell(random) : 0.01 * bell(random);
  return {
    new: current,
    old,
    rollout: rounded(Math.min(old - gap, -0.0001)),
    ref: rounded(current + 0.5 * bell(random)),
  };
}

function drawBatch(seed: number): FidelityBatch {
  const random = seeded(seed);
  const rows = drawRows(random);
  const longest = whole(random, 6, 12);
  const lengths = rows.map((_, row) => (row === 1 ? longest : whole(random, 3, longest - 1)));
  const masks = rows.map((row, index) => drawMask(random, lengths[index] ?? 0, row.masked));
  const tokens = rows.map((row, index) => {
    // Rows that pull and rows that push both get ratios beyond both clips.
    let left = row.advantage === 0 || row.masked ? [] : [...forced];
    return (masks[index] ?? []).map((kept) => {
      const [force, ...rest] = kept === 1 ? left : [];
      if (kept === 1) left = rest;
      return drawLogprobs(random, force);
    });
  });
  const padded = (values: readonly number[]) => Array.from({ length: longest }, (_, t) => values[t] ?? 0);
  const array = (name: keyof Logprobs) => tokens.map((row) => padded(row.map((token) => token[name])));
  return {
    name: `random-${seed}`,
    seed,
    groups: rows.map(({ group }) => group),
    rewards: rows.map(({ reward }) => reward),
    advantages: rows.map(({ advantage }) => advantage),
    mask: masks.map(padded),
    new: array("new"),
    old: array("old"),
    rollout: array("rollout"),
    ref: array("ref"),
  };
}

/** A and B: rewards whose advantages are known by hand, with the row that B masks. */
function rewardVectors(): FidelityBatch {
  const rewards = [1, 0.5, 0, 0, 1, 0, 0, 1, 0.5, 0.5, 0.5, 1, 0, 0, 0, 1];
  const mask = rewards.map((_, row) => (row === 14 ? [0, 0] : row % 3 === 0 ? [1, 0] : [1, 1]));
  const flat = (value: number) => mask.map((row) => row.map(() => value));
  return {
    name: "vectors-A-B",
    seed: null,
    groups: [0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 3, 3, 3, 3, 4],
    rewards,
    advantages: rewards.map((reward) => reward - 0.5),
    mask,
    new: flat(-0.5),
    old: flat(-0.7),
    rollout: flat(-0.7),
    ref: flat(-0.6),
  };
}

/** C: ratios inside and beyond both clips. E: an older policy's log-probs. Both have rows of three and two tokens. */
function lossVectors(): FidelityBatch[] {
  const base = {
    seed: null,
    groups: [0, 0],
    rewards: [1, 0],
    advantages: [1, -0.5],
    mask: [
      [1, 1, 1],
      [1, 1, 0],
    ],
  };
  const newer = [
    [-0.5, -1, -0.2],
    [-0.7, -1.5, 0],
  ];
  const older = [
    [-0.9, -1, -0.1],
    [-1.2, -1.1, 0],
  ];
  const gap = [
    [-0.5, -1, -0.3],
    [-0.7, -1.5, 0],
  ];
  const sampled = [
    [-1.5, -1, -0.32],
    [-0.7, -1.48, 0],
  ];
  return [
    { ...base, name: "vectors-C", new: newer, old: older, rollout: older, ref: older },
    { ...base, name: "vectors-E", new: gap, old: gap, rollout: sampled, ref: sampled },
  ];
}

const klVector: FidelityBatch = {
  name: "vectors-D",
  seed: null,
  groups: [0],
  rewards: [1],
  advantages: [1],
  mask: [[1, 1]],
  new: [[-0.5, -1]],
  old: [[-0.5, -1]],
  rollout: [[-0.5, -1]],
  ref: [[-0.6, -0.8]],
};

/** Every batch, in the order of the committed file. */
export const fidelityBatches = (): FidelityBatch[] => [
  rewardVectors(),
  ...lossVectors(),
  klVector,
  ...Array.from({ length: randomBatches }, (_, index) => drawBatch(index + 1)),
];
