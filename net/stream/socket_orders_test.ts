/** Any order over each kind of sockets (`conduit_orders.ts`). */

import { assertEquals } from "@std/assert";
import { inAnyOrder } from "../../tests/support/memory/conduit_orders.ts";
import {
  onPath,
  pollerWith,
  SOCKET_KINDS,
  WAKEUPS,
} from "../../tests/support/memory/socket_kinds.ts";
import { denoStream } from "./platform_stream.ts";
import type { Stream } from "./stream.ts";
import { connectPolledTcp, connectPolledUnix } from "./polled_connect.ts";
import { listenPolledTcp, listenPolledUnix } from "../bind/polled_listener.ts";
import type { Poller } from "../poll/poller.ts";

const RUNS = 60;
const NEVER = new AbortController().signal;

function testOrders(
  name: string,
  isTcp: boolean,
  pollers: readonly (() => Poller | undefined)[],
  connect: (
    pollers: readonly (Poller | undefined)[],
  ) => Promise<readonly [Stream, Stream]>,
): void {
  Deno.test(`${name}: any order ends, and loses nothing`, async () => {
    const waiting: (Poller | undefined)[] = [];
    await inAnyOrder(RUNS, isTcp, () => {
      const made = pollers.map((make) => make());
      waiting.push(...made);
      return connect(made);
    });
    for (const poller of waiting) assertEquals(poller?.wakeupKind, undefined);
  });
}

for (const { name, isTcp, wakeup, pair } of SOCKET_KINDS) {
  const poller = () => wakeup && pollerWith(wakeup);
  testOrders(
    `${name} and the platform's`,
    isTcp,
    [poller],
    async ([poller]) => {
      const { peer, stream } = await pair(poller);
      return [stream, denoStream(peer)];
    },
  );
}

for (const [name, wakeup] of Object.entries(WAKEUPS)) {
  const poller = () => pollerWith(wakeup);
  const both = `accepted and dialed`;
  testOrders(`${both} TCP (${name})`, true, [poller], async ([poller]) => {
    const at = { hostname: "::1", port: 0 };
    const listener = listenPolledTcp(at, 1, poller)!;
    const sockets = await Promise.all([
      listener.accept(),
      connectPolledTcp(listener.address, NEVER, poller)!,
    ]);
    listener.close();
    return sockets;
  });
  testOrders(
    `${both} unix, each with its own (${name})`,
    false,
    [poller, poller],
    ([one, other]) =>
      onPath(async (path) => {
        const listener = listenPolledUnix(path, 1, 0o770, one)!;
        const sockets = await Promise.all([
          listener.accept(),
          connectPolledUnix(path, NEVER, other)!,
        ]);
        listener.close();
        return sockets;
      }),
  );
}
