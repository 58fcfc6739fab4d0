/** An image that can't be had, told so that its reader can act: which one, what was said of it, and what to do. */
import { BoundaryError } from "@rolldeck/contracts/errors";

/** Of a registry or a line that may be better in a minute. */
const passing =
  /too ?many ?requests|rate limit|timeout|timed out|deadline exceeded|connection reset|unexpected EOF|(?:http status|status code|response status)\D{0,20}(?:429|5\d\d)|temporar|try again/i;

/**
 * @param said by whoever was to get it
 * @returns `no_image`: lasting, but for what is the moment's
 */
export const imageTrouble = (image: string, said: string, remedy: string, cause?: unknown): BoundaryError =>
  new BoundaryError("sandbox", "no_image", `image ${image} can't be had: ${said.trim()}; ${remedy}`, {
    cause,
    retryable: passing.test(said),
  });
