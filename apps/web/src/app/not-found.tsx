import { NoPage } from "../design/no-page.tsx";

export default NoPage;
