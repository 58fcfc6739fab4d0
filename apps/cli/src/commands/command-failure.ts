/** A failure of a command whose message says what to do. */
export class CommandFailure extends Error {
  override readonly name = "CommandFailure";
}
