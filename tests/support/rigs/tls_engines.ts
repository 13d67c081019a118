/**
 * What speaks TLS here, for tests of what all of it promises: `node:tls` and
 * OpenSSL, over the platform's sockets, those of the C library, and conduits.
 *
 * @module
 */

import type { TlsChoice } from "../../../net/libc/choices.ts";
import { openLibssl } from "../../../net/tls/openssl/library.ts";
import { denoStream } from "../../../net/stream/platform_stream.ts";
import { ConduitStream } from "../../../net/stream/conduit_stream.ts";
import type { Stream } from "../../../net/stream/stream.ts";
import { conduitOf } from "../../../net/stream/stream_conduit.ts";
import { sharedPoller } from "../../../net/poll/poller.ts";
import { connectPolledTcp } from "../../../net/stream/polled_connect.ts";
import { listenPolledTcp } from "../../../net/bind/polled_listener.ts";
import type { SocketListener } from "../../../net/bind/socket_listener.ts";

/** An engine, and sockets of the kind that it speaks over. */
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

/** What TLS runs over, as far as it can be had here. */
type Sockets = Pick<TlsEngine, "listen" | "connect">;

const PLATFORM_SOCKETS: Sockets = {
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

const LOCAL_SOCKETS: Sockets = {
  listen: () => listenPolledTcp(LOOPBACK, BACKLOG)!,
  connect: (port) => connectPolledTcp({ ...LOOPBACK, port }, NEVER)!,
};

/** A client speaks over what a tunnel delivers: a conduit as a stream. */
const TUNNEL: Sockets = {
  ...LOCAL_SOCKETS,
  connect: async (port) => {
    const stream = await LOCAL_SOCKETS.connect(port);
    return new ConduitStream(conduitOf(stream), stream.remoteAddress);
  },
};

const hasLocalSockets = sharedPoller() !== undefined;

const PLATFORM: TlsEngine = {
  name: "node:tls",
  tls: "platform",
  ...PLATFORM_SOCKETS,
};

const OPENSSL: TlsEngine = {
  name: "OpenSSL",
  tls: "openssl",
  ...(hasLocalSockets ? LOCAL_SOCKETS : PLATFORM_SOCKETS),
};

/** Where the library of TLS is there and the one of sockets is not to be used. */
const OPENSSL_ON_PLATFORM: TlsEngine = {
  ...PLATFORM,
  name: "OpenSSL over the platform's sockets",
  tls: "openssl",
};

/** As far as they can be had here. */
export const TLS_ENGINES: readonly TlsEngine[] = openLibssl() === undefined
  ? [PLATFORM]
  : [PLATFORM, OPENSSL, OPENSSL_ON_PLATFORM];

/** Each engine over each kind of sockets. */
const OVER_SOCKETS: readonly TlsEngine[] = TLS_ENGINES.flatMap((engine) =>
  hasLocalSockets
    ? [
      { ...engine, name: `${engine.name} (platform)`, ...PLATFORM_SOCKETS },
      { ...engine, name: `${engine.name} (local)`, ...LOCAL_SOCKETS },
    ]
    : [engine]
);

const IN_TUNNEL: readonly TlsEngine[] = hasLocalSockets
  ? TLS_ENGINES.map((engine) => ({
    ...engine,
    name: `${engine.name} (tunnel)`,
    ...TUNNEL,
  }))
  : [];

/** A test with each engine over each kind of sockets. */
export function testEachEngine(
  name: string,
  test: (engine: TlsEngine) => Promise<void>,
): void {
  for (const engine of OVER_SOCKETS) {
    Deno.test(`${engine.name}: ${name}`, () => test(engine));
  }
}

/** The same for clients, which run inside a tunnel, too. */
export function testEachClient(
  name: string,
  test: (engine: TlsEngine) => Promise<void>,
): void {
  testEachEngine(name, test);
  for (const engine of IN_TUNNEL) {
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
