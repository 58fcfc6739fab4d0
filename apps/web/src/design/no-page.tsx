import Link from "next/link";
import type { JSX } from "react";

/** An address that leads nowhere. */
export function NoPage(): JSX.Element {
  return (
    <div className="mx-auto flex w-full max-w-[560px] flex-col gap-3 px-4 py-12">
      <p className="num text-sm text-g7">404</p>
      <h1 className="text-xl font-semibold">There is no page at this address</h1>
      <p className="text-g8">
        A run is at <span className="mono text-sm">/runs/&lt;run&gt;</span>, a rollout of it at{" "}
        <span className="mono text-sm">/runs/&lt;run&gt;/t/&lt;rollout&gt;</span>. Press{" "}
        <span className="mono text-sm">⌘K</span> to find a run by name, id or tag, or go to the{" "}
        <Link href="/runs" className="text-accent-text hover:underline">
          list of runs
        </Link>
        .
      </p>
    </div>
  );
}
