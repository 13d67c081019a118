/**
 * The kinds of connected sockets that there are, for tests of what all of them
 * promise: the platform's, and the C library's with each way to wait for them.
 *
 * @module
 */

import { assertEquals } from "@std/assert";
import { denoStream } from "../../../net/stream/platform_stream.ts";
import { openLibc } from "../../../net/libc/libc.ts";
import type { Stream } from "../../../net/stream/stream.ts";
import {
  connectPolledTcp,
  connectPolledUnix,
} from "../../../net/stream/polled_connect.ts";
import {
  listenPolledTcp,
  listenPolledUnix,
} from "../../../net/bind/polled_listener.ts";
import { type OpenWakeup, Poller } from "../../../net/poll/poller.ts";
import { RingWakeup } from "../../../net/poll/ring_wakeup.ts";
import { ThreadWakeup } from "../../../net/poll/thread_wakeup.ts";

/** The ways to wait for sockets of the C library, as far as they are possible. */
export const WAKEUPS: Readonly<Record<string, OpenWakeup>> = {
  ...(await isRingAllowed() && { ring: RingWakeup.open }),
  ...(openLibc() && { thread: ThreadWakeup.open }),
};

async function isRingAllowed(): Promise<boolean> {
  const library = openLibc();
  if (library === undefined) return false;
  const ring = RingWakeup.open(library, 0, () => {});
  await ring?.close();
  return ring !== undefined;
}

/** A poller of its own, with one way to wait. */
export function pollerWith(wakeup: OpenWakeup): Poller {
  return new Poller(openLibc()!, [wakeup]);
}

/** A test with a poller of its own, which nobody may wait for in the end. */
export function testPolled(
  name: string,
  fn: (poller: Poller) => Promise<void>,
): void {
  Deno.test({
    name,
    ignore: openLibc() === undefined,
    fn: async () => {
      const poller = new Poller(openLibc()!);
      await fn(poller);
      assertEquals(poller.wakeupKind, undefined, "somebody still waits");
    },
  });
}

/** Both ends of a connection. */
export interface SocketPair {
  /** The platform's. */
  readonly peer: Deno.Conn;
  /** Of the kind. */
  readonly stream: Stream;
}

/** See the module description. */
export interface SocketKind {
  readonly name: string;
  readonly isTcp: boolean;
  /** What waits for it; none for the platform's. */
  readonly wakeup?: OpenWakeup;
  /** Connects two. */
  pair(poller: Poller | undefined): Promise<SocketPair>;
}

const PLATFORM: readonly SocketKind[] = [
  { name: "platform's TCP", isTcp: true, pair: platformPair },
  {
    name: "platform's unix",
    isTcp: false,
    pair: () => onPath((path) => platformPair(undefined, path)),
  },
];

/** All kinds. */
export const SOCKET_KINDS: readonly SocketKind[] = [
  ...PLATFORM,
  ...Object.entries(WAKEUPS).flatMap(([waits, wakeup]): SocketKind[] => [
    {
      name: `accepted TCP (${waits})`,
      isTcp: true,
      wakeup,
      pair: (poller) => acceptedPair(poller!),
    },
    {
      name: `dialed TCP (${waits})`,
      isTcp: true,
      wakeup,
      pair: (poller) => dialedPair(poller!),
    },
    {
      name: `accepted unix (${waits})`,
      isTcp: false,
      wakeup,
      pair: (poller) => onPath((path) => acceptedPair(poller!, path)),
    },
    {
      name: `dialed unix (${waits})`,
      isTcp: false,
      wakeup,
      pair: (poller) => onPath((path) => dialedPair(poller!, path)),
    },
  ]),
];

/**
 * A test for each kind. When it is over, nothing of it may be waited for.
 *
 * @param of Which kinds; default: all.
 */
export function testEachKind(
  name: string,
  test: (pair: SocketPair, kind: SocketKind) => Promise<void>,
  of: (kind: SocketKind) => boolean = () => true,
): void {
  for (const kind of SOCKET_KINDS.filter(of)) {
    Deno.test(`${kind.name}: ${name}`, async () => {
      const poller = kind.wakeup && pollerWith(kind.wakeup);
      await test(await kind.pair(poller), kind);
      assertEquals(poller?.wakeupKind, undefined, "somebody still waits");
    });
  }
}

/** What `use` makes of a path that nothing has. */
export async function onPath<T>(use: (path: string) => Promise<T>): Promise<T> {
  const folder = await Deno.makeTempDir();
  try {
    return await use(`${folder}/socket`);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

const LOOPBACK = { hostname: "127.0.0.1", port: 0 };
const BACKLOG = 16;
const NEVER = new AbortController().signal;

async function platformPair(
  _poller?: Poller,
  path?: string,
): Promise<SocketPair> {
  using listener = platformListener(path);
  const [peer, conn] = await Promise.all([
    dialPlatform(listener.addr),
    listener.accept(),
  ]);
  return { peer, stream: denoStream(conn) };
}

async function acceptedPair(
  poller: Poller,
  path?: string,
): Promise<SocketPair> {
  const listener = path === undefined
    ? listenPolledTcp(LOOPBACK, BACKLOG, poller)!
    : listenPolledUnix(path, BACKLOG, 0o770, poller)!;
  try {
    const [peer, stream] = await Promise.all([
      dialPlatform(
        path === undefined
          ? { transport: "tcp", ...listener.address }
          : { transport: "unix", path },
      ),
      listener.accept(),
    ]);
    return { peer, stream };
  } finally {
    listener.close();
  }
}

async function dialedPair(poller: Poller, path?: string): Promise<SocketPair> {
  using listener = platformListener(path);
  const dialed = path === undefined
    ? connectPolledTcp(listener.addr as Deno.NetAddr, NEVER, poller)
    : connectPolledUnix(path, NEVER, poller);
  const [peer, stream] = await Promise.all([listener.accept(), dialed!]);
  return { peer, stream };
}

function platformListener(path?: string): Deno.Listener {
  return path === undefined
    ? Deno.listen(LOOPBACK)
    : Deno.listen({ transport: "unix", path });
}

function dialPlatform(to: Deno.Addr): Promise<Deno.Conn> {
  if (to.transport === "unix") {
    return Deno.connect({
      transport: "unix",
      path: (to as Deno.UnixAddr).path,
    });
  }
  const { hostname, port } = to as Deno.NetAddr;
  return Deno.connect({ hostname, port });
}
