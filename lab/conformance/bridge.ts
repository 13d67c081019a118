/**
 * Plain TCP ports on loopback that lead to where h2spec cannot dial: a unix
 * socket, a port with mutual TLS, and an agent, which dials by itself.
 *
 * A bridge passes bytes and ends on and knows nothing of HTTP/2.
 *
 * @module
 */

import { once } from "node:events";
import tls from "node:tls";
import type { AddressInfo } from "node:net";

export interface Bridge {
  readonly port: number;
  close(): void;
}

/** The far end of a bridge. */
interface FarEnd {
  readonly readable: ReadableStream<Uint8Array<ArrayBuffer>>;
  readonly writable: WritableStream<Uint8Array<ArrayBuffer>>;
  close(): void;
}

/**
 * Connections that h2spec uses at a time. It never closes those on which it asks
 * beforehand how long an answer is, and each would keep an agent's link.
 */
const OPEN_MAX = 2;

/** A port each of whose connections gets a far end of its own. */
export function openBridge(connect: () => Promise<FarEnd>): Bridge {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const open = new Set<Deno.Conn>();
  (async () => {
    for await (const near of listener) {
      near.setNoDelay(true);
      open.add(near);
      const [oldest] = open;
      if (open.size > OPEN_MAX) closeQuietly(oldest!);
      join(near, connect).finally(() => open.delete(near));
    }
  })();
  return { port: listener.addr.port, close: () => listener.close() };
}

async function join(
  near: Deno.TcpConn,
  connect: () => Promise<FarEnd>,
): Promise<void> {
  let far: FarEnd;
  try {
    far = await connect();
  } catch {
    // The far end is gone; h2spec sees a closed connection and says so.
    near.close();
    return;
  }
  // Whichever way ends first, what it carried has been delivered by then.
  await Promise.race([
    near.readable.pipeTo(far.writable, { preventClose: true }),
    far.readable.pipeTo(near.writable, { preventClose: true }),
  ]).catch(() => {}); // A reset is an end like any other here.
  far.close();
  closeQuietly(near);
}

/** Both ways of it are closed, which throws when one was so already. */
function closeQuietly(conn: Deno.Conn): void {
  try {
    conn.close();
  } catch (error) {
    if (!(error instanceof Deno.errors.BadResource)) throw error;
  }
}

export async function connectUnix(path: string): Promise<FarEnd> {
  const conn = await Deno.connect({ transport: "unix", path });
  return farEndOf(conn);
}

export async function connectMutualTls(
  port: number,
  files: { readonly ca: string; readonly cert: string; readonly key: string },
): Promise<FarEnd> {
  const conn = await Deno.connectTls({
    hostname: "127.0.0.1",
    port,
    caCerts: [await Deno.readTextFile(files.ca)],
    cert: await Deno.readTextFile(files.cert),
    key: await Deno.readTextFile(files.key),
    alpnProtocols: ["h2"],
  });
  return farEndOf(conn);
}

function farEndOf(conn: Deno.Conn): FarEnd {
  const { readable, writable } = conn;
  return { readable, writable, close: () => closeQuietly(conn) };
}

/** Where agents dial in, to be taken one by one. */
export interface AgentPort {
  readonly port: number;
  take(): Promise<FarEnd>;
  close(): void;
}

/** Stands in for a server: takes the TLS connections that agents make. */
export async function openAgentPort(
  files: { readonly ca: string; readonly cert: string; readonly key: string },
): Promise<AgentPort> {
  const waiting: { readonly socket: tls.TLSSocket; readonly end: FarEnd }[] =
    [];
  let wake = Promise.withResolvers<void>();
  const server = tls.createServer({
    ca: await Deno.readTextFile(files.ca),
    cert: await Deno.readTextFile(files.cert),
    key: await Deno.readTextFile(files.key),
    requestCert: true,
    rejectUnauthorized: true,
    ALPNProtocols: ["tunnel/1"],
  }, (socket) => {
    // An agent that gives up while it waits is gone when its turn comes. Only
    // a socket that is read from the start tells that it was closed.
    socket.on("error", () => {});
    waiting.push({ socket, end: farEndOfTls(socket) });
    wake.resolve();
    wake = Promise.withResolvers();
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    port: (server.address() as AddressInfo).port,
    close: () => {
      server.close();
      for (const { end } of waiting) end.close();
    },
    async take() {
      for (;;) {
        const first = waiting.shift();
        if (first === undefined) await wake.promise;
        else if (!first.socket.destroyed) return first.end;
      }
    },
  };
}

function farEndOfTls(socket: tls.TLSSocket): FarEnd {
  // Never paused: h2spec's answers are small, and Deno loses the end of a
  // paused TLS socket.
  const readable = new ReadableStream<Uint8Array<ArrayBuffer>>({
    start(controller) {
      socket.on("data", (chunk) => controller.enqueue(new Uint8Array(chunk)));
      socket.on("close", () => {
        try {
          controller.close();
        } catch {
          // Cancelled from the other side before.
        }
      });
      socket.on("end", () => socket.destroy());
    },
  });
  const writable = new WritableStream<Uint8Array<ArrayBuffer>>({
    write: (chunk) =>
      new Promise<void>((resolve, reject) =>
        socket.write(chunk, (error) => error ? reject(error) : resolve())
      ),
  });
  return { readable, writable, close: () => socket.destroy() };
}
