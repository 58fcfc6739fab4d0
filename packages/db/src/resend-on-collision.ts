/** A statement that met another in opposite order was rolled back whole: it is sent again. */
import { isCollision } from "./database-error.ts";

const maxCollisions = 5;

/** @param send one statement, or what may be sent again as a whole @throws what it throws, a collision after the fifth only */
export async function resendOnCollision<T>(send: () => Promise<T>): Promise<T> {
  for (let collisions = 0; ; collisions++) {
    try {
      return await send();
    } catch (error) {
      if (!isCollision(error) || collisions >= maxCollisions) throw error;
    }
  }
}
