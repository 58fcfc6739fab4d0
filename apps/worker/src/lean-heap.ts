import { setFlagsFromString } from "node:v8";

/**
 * Lets the heap grow to one and a half times of what lives before it is collected; on large machines V8 takes four times. A worker
 * holds hundreds of rollouts that each leave a little behind with every turn: measured with 192 of them at 32k tokens, the peak
 * falls from 225 to 149 MB over the idle process, at the same CPU time a turn.
 */
export function keepHeapLean(): void {
  setFlagsFromString("--heap-growing-percent=50");
}
