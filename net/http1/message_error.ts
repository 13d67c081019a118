/**
 * Bytes that are no HTTP/1.1 message, or none that is accepted.
 *
 * @module
 */

export class MessageError extends Error {
  override readonly name = "MessageError";

  /** @param status The status of the answer, if it can still be sent. */
  constructor(readonly status: number, message: string) {
    super(message);
  }
}

/** A peer's text in quotes, harmless for terminals and logs, and not too long. */
export function quote(text: string): string {
  return JSON.stringify(text.length > 80 ? `${text.slice(0, 80)}…` : text);
}
