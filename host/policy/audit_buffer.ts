/**
 * Lines that wait to be written, as octets in a few large pieces.
 *
 * Kept as texts, thousands of small strings would be what the garbage collector
 * is busy with.
 *
 * @module
 */

/**
 * What one write has at most, unless a single line is longer. Large, because a
 * write costs the process as much as some hundred lines.
 */
export const CHUNK_OCTETS: number = 256 * 1024;

/** A piece of the file that is to be: whole lines. */
export interface AuditChunk {
  readonly octets: Uint8Array;
  used: number;
  lines: number;
}

/** See the module description. */
export class AuditBuffer {
  readonly #octetsMax: number;
  readonly #chunkOctets: number;
  #chunks: AuditChunk[] = [];
  #spare: AuditChunk | undefined;
  #octets = 0;
  #lines = 0;

  /**
   * @param octetsMax Most that may wait.
   * @param chunkOctets Of one piece.
   */
  constructor(octetsMax: number, chunkOctets: number = CHUNK_OCTETS) {
    this.#octetsMax = octetsMax;
    this.#chunkOctets = Math.min(chunkOctets, CHUNK_OCTETS);
  }

  /** Octets that wait. */
  get octets(): number {
    return this.#octets;
  }

  /** Lines that wait. */
  get lines(): number {
    return this.#lines;
  }

  /** Adds a line, its end included. @returns Whether there was room for it. */
  push(line: Uint8Array): boolean {
    const { length } = line;
    if (this.#octets + length > this.#octetsMax) return false;
    let chunk = this.#chunks.at(-1);
    if (chunk === undefined || chunk.used + length > chunk.octets.length) {
      this.#chunks.push(chunk = this.#newChunk(length));
    }
    chunk.octets.set(line, chunk.used);
    chunk.used += length;
    chunk.lines++;
    this.#octets += length;
    this.#lines++;
    return true;
  }

  /** The oldest piece; nothing is added to it any more. It still waits. */
  first(): AuditChunk | undefined {
    const [chunk] = this.#chunks;
    if (chunk === undefined || chunk.lines === 0) return undefined;
    // The next line begins a new piece: this one is being written.
    if (this.#chunks.length === 1) this.#chunks.push(this.#newChunk(0));
    return chunk;
  }

  /** The oldest piece is written. */
  shift(): void {
    const chunk = this.#chunks.shift()!;
    this.#octets -= chunk.used;
    this.#lines -= chunk.lines;
    chunk.used = chunk.lines = 0;
    if (chunk.octets.length === this.#chunkOctets) this.#spare = chunk;
  }

  #newChunk(octets: number): AuditChunk {
    const spare = this.#spare;
    if (spare !== undefined && octets <= spare.octets.length) {
      this.#spare = undefined;
      return spare;
    }
    const size = Math.max(this.#chunkOctets, octets);
    return { octets: new Uint8Array(size), used: 0, lines: 0 };
  }
}
