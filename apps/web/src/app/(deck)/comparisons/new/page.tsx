export { NewComparisonPage as default } from "../../../../features/new-comparison/new-comparison-page.tsx";
