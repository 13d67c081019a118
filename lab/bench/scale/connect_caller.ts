/**
 * A caller of a frontend's socket that dials by CONNECT, and says how long the
 * answer took.
 *
 * @module
 */

/** What came of one dial. */
export interface DialOutcome {
  /** Of the answer; 0: there was none. */
  readonly status: number;
  /** The head of the answer and what came with it, or what went wrong. */
  readonly text: string;
  readonly tookMs: number;
}

/** Where it is dialed, and what for. */
export interface ConnectDial {
  /** Of the frontend. */
  readonly path: string;
  readonly target: string;
  /** Whose agent is to dial. */
  readonly node?: string;
  readonly timeoutMs?: number;
}

/** Dials once and hangs up. */
export async function dialOnce(
  { path, target, node, timeoutMs = 30_000 }: ConnectDial,
): Promise<DialOutcome> {
  const startMs = performance.now();
  const outcome = (status: number, text: string) => ({
    ...{ status, text },
    tookMs: performance.now() - startMs,
  });
  let socket: Deno.Conn | undefined;
  let timer: ReturnType<typeof setTimeout> | undefined;
  try {
    socket = await Deno.connect({ transport: "unix", path });
    const { promise: late, resolve } = Promise.withResolvers<null>();
    timer = setTimeout(() => resolve(null), timeoutMs);
    const header = node === undefined ? "" : `tunnel-node: ${node}\r\n`;
    await socket.write(
      new TextEncoder().encode(
        `CONNECT ${target} HTTP/1.1\r\nHost: ${target}\r\n${header}\r\n`,
      ),
    );
    const bytes = new Uint8Array(4_096);
    const count = await Promise.race([socket.read(bytes), late]);
    if (count === null) return outcome(0, "no answer");
    const text = new TextDecoder().decode(bytes.subarray(0, count));
    return outcome(Number(/^HTTP\/1\.1 (\d{3})/.exec(text)?.[1] ?? 0), text);
  } catch (error) {
    return outcome(0, String(error));
  } finally {
    clearTimeout(timer);
    socket?.close();
  }
}
