/** A square of cells with one goal: the smallest environment that has a position, a reward and an end. */
import { z } from "zod";
import type { GymDefinition, GymEnvironment } from "../src/gym-tool.ts";

const moves = { up: [0, -1], down: [0, 1], left: [-1, 0], right: [1, 0] } as const;
const Move = z.strictObject({ move: z.enum(["up", "down", "left", "right"]).describe("Where to go") });
type Move = z.infer<typeof Move>;

/** The goal is in the lower right corner; the seed says in which cell of the first row one starts. */
function gridWorld(size: number): GymEnvironment<Move> {
  let [x, y] = [0, 0];
  const show = () => `you are at ${x},${y}; the goal is at ${size - 1},${size - 1}`;
  return {
    reset(seed) {
      [x, y] = [seed % size, 0];
      return show();
    },
    step({ move }) {
      const [dx, dy] = moves[move];
      if (x + dx < 0 || x + dx >= size || y + dy < 0 || y + dy >= size) throw new Error("there is a wall");
      [x, y] = [x + dx, y + dy];
      const done = x === size - 1 && y === size - 1;
      return { observation: show(), reward: done ? 1 : 0, done };
    },
  };
}

export const gridDefinition = (size: number): GymDefinition<Move> => ({
  name: "walk",
  description: "Take one step on the grid.",
  action: Move,
  make: () => gridWorld(size),
});
