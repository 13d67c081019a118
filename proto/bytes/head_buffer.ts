/**
 * Gathers an HTTP/1.1 message head out of octets that may be cut anywhere.
 *
 * It finds the blank line (RFC 9112 §2.1) and nothing else; what the lines mean
 * is the caller's business.
 *
 * @module
 */

/** A complete head, or why there is none. */
export type GatheredHead =
  /** More octets are needed. */
  | { readonly kind: "incomplete" }
  /** The limit was passed; the object is spent. */
  | { readonly kind: "tooLarge" }
  | {
    readonly kind: "complete";
    /** The lines without their ends, octets as code points. */
    readonly lines: readonly string[];
    /** What came behind the blank line; a copy. */
    readonly rest: Uint8Array;
  };

/** See the module description. */
export class HeadBuffer {
  readonly #octetsMax: number;
  #gathered = new Uint8Array(512);
  #size = 0;
  /** Octets already searched for the blank line. */
  #searched = 0;

  /** @param octetsMax Most octets of a head, blank line not counted. */
  constructor(octetsMax: number) {
    this.#octetsMax = octetsMax;
  }

  /** Takes the next chunk (copied). After `complete` the object is spent. */
  push(chunk: Uint8Array): GatheredHead {
    this.#append(chunk);
    const end = this.#findBlankLine();
    // The last two octets may be the begin of the blank line, which does not
    // count: how a head was cut must not decide whether it is too large.
    if ((end?.head ?? this.#size - 2) > this.#octetsMax) {
      return { kind: "tooLarge" };
    }
    if (end === undefined) return { kind: "incomplete" };
    const lines = latin1(this.#gathered.subarray(0, end.head)).split("\n");
    return {
      kind: "complete",
      lines: lines.map(withoutCr),
      rest: this.#gathered.slice(end.rest, this.#size),
    };
  }

  #append(chunk: Uint8Array): void {
    const size = this.#size + chunk.length;
    if (size > this.#gathered.length) {
      const grown = new Uint8Array(Math.max(size, this.#gathered.length * 2));
      grown.set(this.#gathered.subarray(0, this.#size));
      this.#gathered = grown;
    }
    this.#gathered.set(chunk, this.#size);
    this.#size = size;
  }

  /** Where the head ends and the rest begins; bare LF is accepted (§2.2). */
  #findBlankLine(): { head: number; rest: number } | undefined {
    const octets = this.#gathered;
    for (let at = this.#searched; at < this.#size; at++) {
      if (octets[at] !== LF) continue;
      const next = octets[at + 1] === CR ? at + 2 : at + 1;
      if (next < this.#size && octets[next] === LF) {
        return { head: at, rest: next + 1 };
      }
    }
    // The blank line may be cut: look again at the last three octets.
    this.#searched = Math.max(0, this.#size - 3);
    return undefined;
  }
}

const CR = 13;
const LF = 10;

function withoutCr(line: string): string {
  return line.endsWith("\r") ? line.slice(0, -1) : line;
}

/** In pieces: a call takes no more arguments than fit the stack. */
function latin1(octets: Uint8Array): string {
  let text = "";
  for (let at = 0; at < octets.length; at += 1024) {
    text += String.fromCharCode(...octets.subarray(at, at + 1024));
  }
  return text;
}
