/**
 * Lines that wait to be written, as bytes in a few large pieces.
 *
 * Kept as texts, thousands of small strings would be what the garbage collector
 * is busy with.
 *
 * @module
 */

/**
 * Limit of one write, unless a single line is longer. Large, because a write
 * costs as much as some hundred lines.
 */
export const CHUNK_BYTES: number = 256 * 1024;

/** A piece of the file that is to be: whole lines. */
export interface AuditChunk {
  readonly bytes: Uint8Array;
  used: number;
  lines: number;
}

/** Lines in memory, as chunks that are written whole. */
export class AuditBuffer {
  readonly #chunkBytes: number;
  #chunks: AuditChunk[] = [];
  #spare: AuditChunk | undefined;
  #bytes = 0;
  #lines = 0;

  /**
   * @param bytesMax Most that may wait.
   * @param chunkBytes Of one piece.
   */
  constructor(
    private readonly bytesMax: number,
    chunkBytes: number = CHUNK_BYTES,
  ) {
    this.#chunkBytes = Math.min(chunkBytes, CHUNK_BYTES);
  }

  /** Bytes that wait. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Lines that wait. */
  get lines(): number {
    return this.#lines;
  }

  /** Adds lines, their ends included. @returns Whether there was room for them. */
  push(bytes: Uint8Array, lines = 1): boolean {
    const { length } = bytes;
    if (this.#bytes + length > this.bytesMax) return false;
    let chunk = this.#chunks.at(-1);
    if (chunk === undefined || chunk.used + length > chunk.bytes.length) {
      this.#chunks.push(chunk = this.#newChunk(length));
    }
    chunk.bytes.set(bytes, chunk.used);
    chunk.used += length;
    chunk.lines += lines;
    this.#bytes += length;
    this.#lines += lines;
    return true;
  }

  /** The oldest piece; it is complete, and still waits to be written. */
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
    this.#bytes -= chunk.used;
    this.#lines -= chunk.lines;
    chunk.used = chunk.lines = 0;
    if (chunk.bytes.length === this.#chunkBytes) this.#spare = chunk;
  }

  #newChunk(bytes: number): AuditChunk {
    const spare = this.#spare;
    if (spare !== undefined && bytes <= spare.bytes.length) {
      this.#spare = undefined;
      return spare;
    }
    const size = Math.max(this.#chunkBytes, bytes);
    return { bytes: new Uint8Array(size), used: 0, lines: 0 };
  }
}
