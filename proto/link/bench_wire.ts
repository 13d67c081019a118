/**
 * The protocol of a bench and an agent's bench target: one line each way, then
 * bytes (SPEC.md, section 8).
 *
 * Layer: link. It knows the lines only: the target is in `agent/`, the
 * measuring client in `cli/bench/`.
 *
 * @module
 */

/**
 * The address of the bench target inside an agent. Names under `.invalid` never
 * exist (RFC 6761 §6.4), so no real target is hidden, and an agent without it
 * answers that there is no such host.
 */
export const BENCH_ADDRESS = "bench.tunnel.invalid:7";

/**
 * What a bench target does with a connection.
 *
 * - `echo`: sends back what it gets (RFC 862);
 * - `source`: sends bytes as fast as they are taken (RFC 864);
 * - `discard`: drops what it gets (RFC 863) and sends now and then how much
 *   that was, as a decimal number in a line.
 */
export type BenchService = "echo" | "source" | "discard";

/** The host that answers. */
export interface BenchHost {
  /** The agent's id; empty for a bench target that is no agent's. */
  readonly agentId: string;
  /** Such as `tunnel/0.1.0`. */
  readonly software: string;
}

/** Longest line of either side: the longest agent id fits, a page does not. */
export const BENCH_LINE_BYTES_MAX = 1024;

const VERSION = "tunnel-bench/1";
const SERVICES: readonly BenchService[] = ["echo", "source", "discard"];
const NEWLINE = 0x0a;
const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** The line that requests `service`. */
export function benchRequest(service: BenchService): Uint8Array {
  return encoder.encode(`${VERSION} ${service}\n`);
}

/** @returns `undefined` when the line is no such request. */
export function parseBenchRequest(line: string): BenchService | undefined {
  return SERVICES.find((service) => line === `${VERSION} ${service}`);
}

/** The line that grants a request. */
export function benchAnswer({ agentId, software }: BenchHost): Uint8Array {
  const words = [agentId, software].map(encodeURIComponent).join(" ");
  return encoder.encode(`${VERSION} ok ${words}\n`);
}

/** @returns `undefined` when the line is no such answer. */
export function parseBenchAnswer(line: string): BenchHost | undefined {
  const [version, word, agentId, software, ...more] = line.split(" ");
  if (version !== VERSION || word !== "ok" || more.length > 0) return undefined;
  if (agentId === undefined || software === undefined) return undefined;
  try {
    return {
      agentId: decodeURIComponent(agentId),
      software: decodeURIComponent(software),
    };
  } catch {
    return undefined; // A stray % sign: the sender is no bench target.
  }
}

/** One report of `discard`. */
export function discardReport(bytes: number): Uint8Array {
  return encoder.encode(`${bytes}\n`);
}

/**
 * After how many bytes `discard` reports: often enough to see a slow path move,
 * seldom enough to cost a fast path nothing.
 */
export function nextReportAt(bytes: number): number {
  return bytes + Math.max(4096, Math.floor(bytes / 128));
}

/** A line, and how much of the last chunk belonged to it. */
interface BenchLine {
  /** The line without its end; `undefined` when it is too long. */
  readonly text: string | undefined;
  readonly taken: number;
}

/** Gathers lines out of chunks. */
export class BenchLineReader {
  #gathered: number[] = [];

  /** @returns `undefined` until a line is complete. All of `chunk` is taken then. */
  push(chunk: Uint8Array): BenchLine | undefined {
    const end = chunk.indexOf(NEWLINE);
    const part = end < 0 ? chunk : chunk.subarray(0, end);
    if (this.#gathered.length + part.length > BENCH_LINE_BYTES_MAX) {
      return { text: undefined, taken: chunk.length };
    }
    this.#gathered.push(...part);
    if (end < 0) return undefined;
    const text = decoder.decode(new Uint8Array(this.#gathered));
    this.#gathered = [];
    return { text, taken: end + 1 };
  }
}
