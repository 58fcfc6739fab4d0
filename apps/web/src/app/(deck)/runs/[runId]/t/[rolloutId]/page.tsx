import type { JSX } from "react";
import { RolloutPage } from "../../../../../../features/rollout/rollout-page.tsx";

export default async function Page({
  params,
}: {
  params: Promise<{ runId: string; rolloutId: string }>;
}): Promise<JSX.Element> {
  const { runId, rolloutId } = await params;
  return <RolloutPage runId={runId} rolloutId={rolloutId} />;
}
