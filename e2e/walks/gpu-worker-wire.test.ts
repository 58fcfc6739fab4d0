/** The step backend's conformance suite against the real GPU worker: the same one that the scripted worker passes. */
import { describeBackend } from "@rolldeck/backends/testing/conformance";
import { connectTinker } from "@rolldeck/backends/tinker/connect";
import { startGpuWorker } from "../stack/started-gpu-worker.ts";

describeBackend({
  name: "GPU worker",
  baseModel: "quickstart",
  fenced: true,
  start: async () => {
    const worker = await startGpuWorker({});
    const backend = connectTinker({ url: worker.url, apiKey: worker.apiKey, dialect: "rolldeck" });
    const close = async (): Promise<void> => {
      await backend.close();
      await worker.stop();
    };
    return { backend, close };
  },
});
