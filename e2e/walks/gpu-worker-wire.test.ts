/** The step backend's conformance suite against the real GPU worker: the same one that the scripted worker passes. */
import { describeBackend, never, sampleRequest } from "@rolldeck/backends/testing/conformance";
import { connectTinker } from "@rolldeck/backends/tinker/connect";
import { fixedPrompt } from "@rolldeck/contracts/ports/sampler";
import { expect, test } from "vitest";
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

test("the GPU worker's refusal of a prompt that fills its context is read as context full", async () => {
  const worker = await startGpuWorker({});
  const backend = connectTinker({ url: worker.url, apiKey: worker.apiKey, dialect: "rolldeck" });
  const model = await backend.createModel({ baseModel: "quickstart", seed: 1, fence: { runId: "run", token: 1 } });
  const sampler = backend.sampler(await model.saveWeightsForSampler(1));
  const [{ maxContextTokens } = { maxContextTokens: 0 }] = (await backend.info()).models;
  for (const length of [maxContextTokens - 1, maxContextTokens, maxContextTokens + 100]) {
    const prompt = fixedPrompt(Array.from({ length }, () => 102));
    const sampling = sampler.sample(sampleRequest({ prompt, maxTokens: 32 }), never());
    await expect(sampling).rejects.toMatchObject({ code: "context_full", retryable: false });
  }
  await backend.close();
  await worker.stop();
});
