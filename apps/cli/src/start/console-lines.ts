/** What `npm start` prints: one short line per fact, a name in front, seconds since the start. No secrets. */
const startedAt = Date.now();

export function say(name: string, message: string): void {
  const seconds = ((Date.now() - startedAt) / 1000).toFixed(1).padStart(6);
  process.stdout.write(`${seconds} s  ${name.padEnd(10)} ${message}\n`);
}
