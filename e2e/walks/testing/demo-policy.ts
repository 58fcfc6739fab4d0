/** What the scripted policy of walks and demos says: deterministic in the seed. */
import { Refusal } from "@rolldeck/backends/testing/scripted/refusal";
import { keyChainPolicy, type Policy } from "@rolldeck/backends/testing/scripted-worker";

/** Strings that would act if any page took them for more than text. */
export const hostileText = `<img src=x onerror="document.title='P'"></script><script>document.title='P'</script>[x](javascript:document.title='P')`;

/** What a hostile policy says in one turn of 32 tokens. */
export const hostileTurn = "<img src=x onerror=alert(1)>";

const learns = keyChainPolicy({ skill: 0.25, gain: 0.03 });
/** Learns with each version; now and then rambles until it is cut, or says something hostile. */
export const demoPolicy: Policy = (input) => {
  const chance = (Math.imul(input.seed ^ 0x2545f491, 0x9e3779b1) >>> 0) / 2 ** 32;
  if (chance < 0.03) return "let me think about it once more and then once again";
  if (chance < 0.06) return hostileTurn;
  return learns(input);
};

/** The demo policy behind an engine that, while `breaks` is set, refuses a few rollouts however often they are tried. */
export function breakableEngine(): { breaks: boolean; readonly policy: Policy } {
  const engine = {
    breaks: false,
    policy: (input: Parameters<Policy>[0]) => {
      const chance = (Math.imul(input.seed ^ 0x51ed270b, 0x9e3779b1) >>> 0) / 2 ** 32;
      if (engine.breaks && chance < 0.06) throw new Refusal("bad_input", "the scripted engine refuses this prompt");
      return demoPolicy(input);
    },
  };
  return engine;
}

/**
 * Reads the small memory task part by part: thinks aloud once in some rollouts, which is no call, goes on with a memory, and at the
 * end answers a digit that the seed chose.
 */
export const memoryPolicy: Policy = ({ prompt, seed }) => {
  const chance = (Math.imul(seed ^ 0x2545f491, 0x9e3779b1) >>> 0) / 2 ** 32;
  if (chance < 0.4 && prompt.includes("\nm \n") && !prompt.includes("hm, let me see")) return "hm, let me see";
  const digit = Math.floor(chance * 1000) % 10;
  return prompt.includes("\nend") ? `[finish(answer="${digit}")]` : `[next_with_summary(summary="${digit}")]`;
};
