/** Text of terminals without what steers them, so that it can neither run nor leak. Pure. */
const controlCodes =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is removed
  /\u001b\][^\u0007\u001b]*(?:\u0007|\u001b\\)?|\u001b\[[0-?]*[ -/]*[@-~]?|\u001b[@-Z\\-_]?|[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f]/g;

/** CSI, OSC and single control characters out; a carriage return keeps only the last state of its line. */
export function stripControlCodes(text: string): string {
  return text
    .replace(/\r\n/g, "\n")
    .split("\n")
    .map((line) => {
      const plain = line.replace(controlCodes, "");
      const states = plain.split("\r").filter((state) => state !== "");
      return states.at(-1) ?? "";
    })
    .join("\n");
}
