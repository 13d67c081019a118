// deno-lint-ignore-file no-console -- its output is what it has measured.
/**
 * Somebody who uses the tunnel while it is attacked, as a process: small
 * requests over connections that stay, and every tenth over a new one, at a
 * steady pace that leaves the server mostly idle.
 *
 * `neighbour.ts SOCKET` prints the port of a target that sends for ever. Each
 * line on standard input is answered with what was measured since the last.
 *
 * @module
 */

import { pause } from "./hostile_peer.ts";

/** What was measured between two lines. */
export interface Latency {
  readonly requests: number;
  readonly failures: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly maxMs: number;
}

const REQUEST = new Uint8Array(128);
const PACE_MS = 2;
const TEN = 10;

async function echo(conn: Deno.Conn): Promise<void> {
  const buffer = new Uint8Array(1024);
  try {
    for (let count; (count = await conn.read(buffer)) !== null;) {
      await conn.write(buffer.subarray(0, count));
    }
  } catch {
    // The tunnel has dropped it.
  }
  conn.close();
}

async function flood(conn: Deno.Conn): Promise<void> {
  try {
    for (;;) await conn.write(new Uint8Array(64 * 1024));
  } catch {
    conn.close();
  }
}

async function serve(
  listener: Deno.TcpListener,
  handle: (conn: Deno.Conn) => Promise<void>,
): Promise<void> {
  for await (const conn of listener) void handle(conn);
}

/** A tunnel to `port`, by CONNECT. */
async function dial(socket: string, port: number): Promise<Deno.Conn> {
  const conn = await Deno.connect({ transport: "unix", path: socket });
  const head = `CONNECT 127.0.0.1:${port} HTTP/1.1\r\n\r\n`;
  await conn.write(new TextEncoder().encode(head));
  const answer = new Uint8Array(4096);
  const count = await conn.read(answer);
  const words = new TextDecoder().decode(answer.subarray(0, count ?? 0));
  if (words.startsWith("HTTP/1.1 200")) return conn;
  conn.close();
  throw new Error(words);
}

async function ask(conn: Deno.Conn): Promise<void> {
  await conn.write(REQUEST);
  const buffer = new Uint8Array(REQUEST.length);
  for (let seen = 0; seen < REQUEST.length;) {
    const count = await conn.read(buffer);
    if (count === null) throw new Error("closed");
    seen += count;
  }
}

if (import.meta.main) {
  const [socket] = Deno.args;
  const [echoes, floods] = [1, 2].map(() =>
    Deno.listen({ hostname: "127.0.0.1", port: 0 })
  );
  void serve(echoes!, echo);
  void serve(floods!, flood);
  const { port } = echoes!.addr;
  let tookMs: number[] = [];
  let failures = 0;
  let kept = await dial(socket!, port);
  const use = async () => {
    for (let index = 0;; index++) {
      const startMs = performance.now();
      try {
        if (index % TEN === 0) {
          kept.close();
          kept = await dial(socket!, port);
        }
        await ask(kept);
      } catch {
        failures++;
        await pause(TEN);
        kept = await dial(socket!, port).catch(() => kept);
      }
      tookMs.push(performance.now() - startMs);
      await pause(PACE_MS);
    }
  };
  void use();
  console.log(floods!.addr.port);
  const line = new Uint8Array(16);
  while (await Deno.stdin.read(line) !== null) {
    const sorted = tookMs.sort((one, other) => one - other);
    const at = (part: number) =>
      sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ??
        NaN;
    const latency: Latency = {
      requests: sorted.length,
      failures,
      p50Ms: at(.5),
      p99Ms: at(.99),
      maxMs: at(1),
    };
    tookMs = [];
    failures = 0;
    console.log(JSON.stringify(latency));
  }
  Deno.exit();
}
