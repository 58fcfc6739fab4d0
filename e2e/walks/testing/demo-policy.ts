/** What the scripted policy of walks and demos says: deterministic in the seed. */
import { keyChainPolicy, type Policy } from "@rolldeck/backends/testing/scripted-worker";

/** Strings that would act if any page took them for more than text. */
export const hostileText = `<img src=x onerror="document.title='P'"></script><script>document.title='P'</script>[x](javascript:document.title='P')`;

const learns = keyChainPolicy({ skill: 0.25, gain: 0.03 });
/** Learns with each version, now and then rambles until it is cut, and once in a while says something hostile. */
export const demoPolicy: Policy = (input) => {
  const chance = (Math.imul(input.seed ^ 0x2545f491, 0x9e3779b1) >>> 0) / 2 ** 32;
  if (chance < 0.04) return "let me think about it once more and then once again";
  if (chance < 0.05) return `[get(k="<b>x</b>")]`;
  return learns(input);
};
