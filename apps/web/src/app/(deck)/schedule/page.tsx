export { SchedulePage as default } from "../../../features/schedule/schedule-page.tsx";
