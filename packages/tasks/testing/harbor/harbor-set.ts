/** Tasks in the public shapes, with content of their own: one step, old keys, several steps, tests apart, a service beside. */
import { join } from "node:path";

/** A data set: a folder of task folders. */
export const harborSet = join(import.meta.dirname, "set");
