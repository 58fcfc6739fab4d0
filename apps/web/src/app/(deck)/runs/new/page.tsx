export { NewRunPage as default } from "../../../../features/new-run/new-run-page.tsx";
