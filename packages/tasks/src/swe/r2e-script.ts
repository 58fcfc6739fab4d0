/** How R2E-Gym's images run their tests: kept out of the repository until then, linked into it, and run by a script of the image. */
import { type EvalScript, quoted } from "./eval-script.ts";

export const r2ePath =
  "/root/.venv/bin:/root/.local/bin:/root/.cargo/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/** @param folder of the repository */
export const r2eScript = (folder: string): EvalScript => ({
  tellsExitCode: false,
  command: "bash /root/run_tests.sh",
  text: `#!/bin/bash
cd ${quoted(folder)} || exit 3
mkdir -p /root/.local/bin
for name in run_tests.sh r2e_tests; do
  # In the repository last: a patch may have put it there.
  for place in / /root .; do
    if [ -e "$place/$name" ] && [ ! -L "$place/$name" ]; then
      if [ "$place" != /root ]; then rm -rf "/root/$name"; mv "$place/$name" "/root/$name"; fi
      break
    fi
  done
done
[ -d .venv ] && ln -sfn "$PWD/.venv" /root/.venv
rm -rf r2e_tests
ln -s /root/r2e_tests r2e_tests
export PATH=${r2ePath}
bash /root/run_tests.sh
code=$?
rm -f r2e_tests
exit $code
`,
});
