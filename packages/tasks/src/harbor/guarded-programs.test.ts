import { describe, expect, test } from "vitest";
import { changeFlags, type Programs, programChanges } from "./guarded-programs.ts";

const at = (path: string, digest = "d") => ({ path, digest });
const programs = (map: Record<string, { path: string; digest: string }[]>): Programs => new Map(Object.entries(map));

describe("programs that the verifier runs", () => {
  const image = programs({ bash: [at("/usr/bin/bash"), at("/bin/bash")], python3: [at("/usr/bin/python3")] });

  test("unchanged ones are left alone; new ones after the image's own, or of new names, too", () => {
    const now = programs({
      bash: [at("/usr/bin/bash"), at("/bin/bash")],
      python3: [at("/usr/bin/python3"), at("/opt/bin/python3", "x")],
      node: [at("/usr/local/bin/node")],
    });
    expect(programChanges(image, now)).toEqual({ shadows: [], replaced: [] });
  });
  test("one before the image's own is a shadow, another content a replacement, as is none", () => {
    const now = programs({ bash: [at("/usr/local/bin/bash", "evil"), at("/usr/bin/bash", "evil"), at("/bin/bash")] });
    const changes = programChanges(image, now);
    expect(changes).toEqual({
      shadows: [{ name: "bash", path: "/usr/local/bin/bash" }],
      replaced: [
        { name: "bash", path: "/usr/bin/bash" },
        { name: "python3", path: "/usr/bin/python3" },
      ],
    });
    expect(changeFlags(changes)).toEqual(["put its own bash before the image's", "changed bash", "changed python3"]);
  });
  test("files that programs load on their own: new ones are taken away", () => {
    const now = new Map([...image, ["/etc/ld.so.preload", [at("/etc/ld.so.preload")]] as const]);
    expect(programChanges(image, now).shadows).toEqual([{ name: "/etc/ld.so.preload", path: "/etc/ld.so.preload" }]);
    expect(programChanges(now, now)).toEqual({ shadows: [], replaced: [] });
  });
});
