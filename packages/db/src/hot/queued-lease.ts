/** Jobs of a burst that a worker is sure to have fetched within a lease, with room. */
const atOnce = 256;
/** For each job past those, milliseconds: what fetching one takes on a busy machine. */
const eachMs = 25;

/**
 * SQL: until when a queued stage's job counts as on its way. A queue gives out one job after the other: the last of thousands would
 * be delivered again, behind all others, before its turn came.
 * @param place in the burst, from 0 @param leaseMs milliseconds
 */
export const queuedLease = (place: string, leaseMs: string): string =>
  `now() + (${leaseMs}::int + greatest(${place} - ${atOnce}, 0) * ${eachMs}) * interval '1 millisecond'`;
