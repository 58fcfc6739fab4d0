/**
 * Rendezvous hashing: every key has its own fixed order of the targets. A target that goes away moves only the keys that were
 * on it, each to its own second choice, and they come back when it does: what an engine has cached of a rollout stays of use.
 */

/** Indexes of `names`, best first. */
export function rankTargets(names: readonly string[], affinityKey: string): number[] {
  if (names.length === 1) return [0];
  const scores = names.map((name) => mixed(`${affinityKey}\0${name}`));
  return names.map((_, index) => index).sort((a, b) => (scores[b] ?? 0) - (scores[a] ?? 0) || a - b);
}

/** FNV-1a over UTF-16 units with a final avalanche: evenly spread, the same in every process. */
function mixed(text: string): number {
  let hash = 0x811c9dc5;
  for (let at = 0; at < text.length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}
