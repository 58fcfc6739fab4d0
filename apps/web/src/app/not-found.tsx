import Link from "next/link";
import type { JSX } from "react";

export default function NotFound(): JSX.Element {
  return (
    <main className="mx-auto flex max-w-[480px] flex-col gap-2 px-4 py-24">
      <h1 className="text-xl font-semibold">There is no page at this address</h1>
      <p className="text-g8">
        Check the address, or go to the{" "}
        <Link href="/runs" className="text-accent-text hover:underline">
          list of runs
        </Link>
        .
      </p>
    </main>
  );
}
