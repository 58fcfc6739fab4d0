import type { Hint } from "./hint.ts";

/** An edit by replacement: its tool takes the old text as this argument. */
const oldText = "old_str";

/** After an edit that did not apply. */
export const failedEdit: Hint = ({ calls }) => {
  const edit = calls.find((call) => call.error !== null && typeof call.arguments[oldText] === "string");
  if (edit === undefined) return null;
  return (
    `hint: the edit was not made. View the place in the file again, copy ${oldText} from it exactly, blanks included, ` +
    "and take enough lines that it occurs only once"
  );
};
