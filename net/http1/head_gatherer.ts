/**
 * Gathers the lines of one HTTP/1.1 head out of bytes that may be cut anywhere:
 * finds the blank line (RFC 9112 §2.1) and nothing else.
 *
 * @module
 */

export class HeadGatherer {
  #gathered = NO_BYTES;
  #size = 0;
  /** Bytes already searched for the blank line. */
  #searched = 0;

  /** @param bytesMax Most bytes of a head, blank line not counted. */
  constructor(private readonly bytesMax: number) {}

  /**
   * Takes the next chunk (copied).
   *
   * @returns The lines without their ends, bytes as code points, and a copy of
   *   the bytes after the blank line.
   */
  push(
    chunk: Uint8Array,
  ):
    | "incomplete"
    | "tooLarge"
    | { readonly lines: readonly string[]; readonly rest: Uint8Array } {
    // Nearly every head comes in one piece, which then need not be copied.
    const isFirst = this.#size === 0;
    const bytes = isFirst ? chunk : this.#append(chunk);
    const end = findBlankLine(bytes, this.#searched);
    // The last two bytes may be the begin of the blank line, which does not
    // count: how a head was cut must not decide whether it is too large.
    const isTooLarge = (end?.head ?? bytes.length - 2) > this.bytesMax;
    if (isFirst && (isTooLarge || end === undefined)) this.#append(chunk);
    if (isTooLarge) return "tooLarge";
    if (end === undefined) {
      // The blank line may be cut: look again at the last three bytes.
      this.#searched = Math.max(0, bytes.length - 3);
      return "incomplete";
    }
    const lines = latin1(bytes.subarray(0, end.head)).split("\n");
    const isAll = end.rest === bytes.length;
    return {
      lines: lines.map(withoutCr),
      rest: isAll ? NO_BYTES : bytes.slice(end.rest),
    };
  }

  /** The first gathered bytes, as code points. */
  get start(): string {
    const bytes = this.#gathered.subarray(0, Math.min(this.#size, START_BYTES));
    return latin1(bytes);
  }

  /** @returns All that was gathered; valid until the next call. */
  #append(chunk: Uint8Array): Uint8Array {
    const size = this.#size + chunk.length;
    if (size > this.#gathered.length) {
      const doubled = Math.max(GATHER_BYTES_MIN, this.#gathered.length * 2);
      const grown = new Uint8Array(Math.max(size, doubled));
      grown.set(this.#gathered.subarray(0, this.#size));
      this.#gathered = grown;
    }
    this.#gathered.set(chunk, this.#size);
    this.#size = size;
    return this.#gathered.subarray(0, size);
  }
}

const NO_BYTES = new Uint8Array(0);

/** First size of the buffer; it doubles as bytes really arrive. */
const GATHER_BYTES_MIN = 512;

/** No more than this is shown. */
const START_BYTES = 100;

const CR = 13;
const LF = 10;

function withoutCr(line: string): string {
  return line.endsWith("\r") ? line.slice(0, -1) : line;
}

/** Where the head ends and the rest begins; bare LF is accepted (§2.2). */
function findBlankLine(
  bytes: Uint8Array,
  from: number,
): { head: number; rest: number } | undefined {
  for (let at = from; at < bytes.length; at++) {
    if (bytes[at] !== LF) continue;
    const next = bytes[at + 1] === CR ? at + 2 : at + 1;
    if (bytes[next] === LF) return { head: at, rest: next + 1 };
  }
  return undefined;
}

/** In pieces: the arguments of one call must fit the stack. */
function latin1(bytes: Uint8Array): string {
  let text = "";
  for (let at = 0; at < bytes.length; at += 1024) {
    const piece = bytes.subarray(at, at + 1024);
    // Not spread: that goes through the iterator, at ten times the price.
    text += String.fromCharCode.apply(null, piece as unknown as number[]);
  }
  return text;
}
