import type { Hint } from "./hint.ts";

/** After a turn whose call could not be read. The error itself is always told; this adds a whole example. */
export const malformedCall: Hint = ({ unreadable, exampleCall }) =>
  unreadable && exampleCall !== ""
    ? `hint: write the call exactly in this form, with nothing after it:\n${exampleCall}`
    : null;
