export { RunsPage as default } from "../../../features/runs/runs-page.tsx";
