import { expect, test } from "vitest";
import { parseGpus } from "./probe-gpus.ts";

test("reads GPUs by their UUIDs, whatever else is said", () => {
  const text = [
    "0, GPU-5d0b1c4e-7d5f-4b5e-9c3a-2f1e0d9c8b7a, 143771, NVIDIA H200",
    "Failed to initialize NVML: Driver/library version mismatch",
    "1, GPU-00000000-7d5f-4b5e-9c3a-2f1e0d9c8b7a, 24576, NVIDIA GeForce RTX 4090",
    "2, GPU-11111111-7d5f-4b5e-9c3a-2f1e0d9c8b7a, [N/A], NVIDIA GB10",
    "",
  ].join("\n");
  expect(parseGpus(text)).toEqual([
    { uuid: "GPU-5d0b1c4e-7d5f-4b5e-9c3a-2f1e0d9c8b7a", index: 0, model: "NVIDIA H200", memoryMb: 143_771 },
    { uuid: "GPU-00000000-7d5f-4b5e-9c3a-2f1e0d9c8b7a", index: 1, model: "NVIDIA GeForce RTX 4090", memoryMb: 24_576 },
    { uuid: "GPU-11111111-7d5f-4b5e-9c3a-2f1e0d9c8b7a", index: 2, model: "NVIDIA GB10", memoryMb: 0 },
  ]);
});
