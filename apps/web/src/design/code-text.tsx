import { Fragment, type JSX } from "react";

/** A sentence in which what stands between backticks is code. */
export function CodeText({ text }: { text: string }): JSX.Element {
  return (
    <>
      {text.split("`").map((part, place) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: a part is its place in the sentence
        <Fragment key={place}>{place % 2 === 1 ? <code className="mono">{part}</code> : part}</Fragment>
      ))}
    </>
  );
}
