import type { JSX } from "react";
import { ComparisonPage } from "../../../../features/comparison/comparison-page.tsx";

export default async function Page({ params }: { params: Promise<{ comparisonId: string }> }): Promise<JSX.Element> {
  return <ComparisonPage comparisonId={(await params).comparisonId} />;
}
