import type { JSX } from "react";
import { RunPage } from "../../../../features/run/run-page.tsx";

export default async function Page({ params }: { params: Promise<{ runId: string }> }): Promise<JSX.Element> {
  return <RunPage runId={(await params).runId} />;
}
