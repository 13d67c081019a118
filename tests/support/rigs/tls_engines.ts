/**
 * What speaks TLS here, for tests of what all of it promises: `node:tls` over
 * the platform's sockets, OpenSSL over those of the C library.
 *
 * @module
 */

import type { TlsChoice } from "../../../net/tls/openssl/tls_choice.ts";
import { openLibssl } from "../../../net/tls/openssl/library.ts";
import { denoStream } from "../../../net/stream/platform_stream.ts";
import type { Stream } from "../../../net/stream/stream.ts";
import { connectPolledTcp } from "../../../net/stream/polled_connect.ts";
import { listenPolledTcp } from "../../../net/bind/polled_listener.ts";
import type { SocketListener } from "../../../net/bind/socket_listener.ts";

/** Sockets of the kind that TLS is spoken over. */
export interface TlsEngine {
  readonly name: string;
  readonly tls: TlsChoice;
  listen(): SocketListener;
  connect(port: number): Promise<Stream>;
}

/** Both ends of a connection in the clear. */
export interface EnginePair {
  /** The platform's. */
  readonly peer: Deno.TcpConn;
  readonly stream: Stream;
}

const LOOPBACK = { hostname: "127.0.0.1", port: 0 };
const BACKLOG = 16;
const NEVER = new AbortController().signal;

const PLATFORM: TlsEngine = {
  name: "node:tls",
  tls: "platform",
  listen: () => {
    const listener = Deno.listen(LOOPBACK);
    return {
      address: listener.addr as Deno.NetAddr,
      accept: async () => denoStream(await listener.accept()),
      close: () => listener.close(),
    };
  },
  connect: async (port) =>
    denoStream(await Deno.connect({ ...LOOPBACK, port })),
};

const OPENSSL: TlsEngine = {
  name: "OpenSSL",
  tls: "openssl",
  listen: () => listenPolledTcp(LOOPBACK, BACKLOG)!,
  connect: (port) => connectPolledTcp({ ...LOOPBACK, port }, NEVER)!,
};

/** As far as they can be had here. */
export const TLS_ENGINES: readonly TlsEngine[] = openLibssl() === undefined
  ? [PLATFORM]
  : [PLATFORM, OPENSSL];

/** A test with each of them. */
export function testEachEngine(
  name: string,
  test: (engine: TlsEngine) => Promise<void>,
): void {
  for (const engine of TLS_ENGINES) {
    Deno.test(`${engine.name}: ${name}`, () => test(engine));
  }
}

/** A socket that was accepted, and the platform's at the other end. */
export async function acceptedPair(engine: TlsEngine): Promise<EnginePair> {
  const listener = engine.listen();
  try {
    const { port } = listener.address;
    const [peer, stream] = await Promise.all([
      Deno.connect({ ...LOOPBACK, port }),
      listener.accept(),
    ]);
    return { peer, stream };
  } finally {
    listener.close();
  }
}

/** A socket that has connected, and the platform's at the other end. */
export async function dialedPair(engine: TlsEngine): Promise<EnginePair> {
  using listener = Deno.listen(LOOPBACK);
  const { port } = listener.addr;
  const [peer, stream] = await Promise.all([
    listener.accept(),
    engine.connect(port),
  ]);
  return { peer, stream };
}
