/**
 * A conduit over OpenSSL at both ends of a TCP connection: what only the raw end
 * can do to it (`tls_client_test.ts` has what all of TLS promises).
 */

import { assertEquals } from "@std/assert";
import { certificates } from "../../../tests/support/certificates/certificates.ts";
import { inAnyOrder } from "../../../tests/support/memory/conduit_orders.ts";
import { settled } from "../../../tests/support/memory/conduit_probe.ts";
import { Prng } from "../../../tests/support/memory/prng.ts";
import {
  pollerWith,
  WAKEUPS,
} from "../../../tests/support/memory/socket_kinds.ts";
import {
  clientContext,
  LIBSSL,
  serverContext,
} from "../../../tests/support/memory/secure_pair.ts";
import { Listener } from "../../../tests/support/peers/sockets.ts";
import { SecureSession } from "./secure_session.ts";
import { conduitOf } from "../../stream/stream_conduit.ts";
import { connectPolledTcp } from "../../stream/polled_connect.ts";
import { listenPolledTcp } from "../../bind/polled_listener.ts";
import type { Poller } from "../../poll/poller.ts";
import { Socket } from "../../stream/socket.ts";
import type { Stream } from "../../stream/stream.ts";
import { doHandshake } from "./handshake.ts";

const all = await certificates();
const NEVER = new AbortController().signal;
const LOOPBACK = { hostname: "127.0.0.1", port: 0 };

/** Both ends; the raw one is what TLS rides on. */
interface Ends {
  readonly client: Stream;
  readonly server: Stream;
  readonly raw: Stream;
}

async function secureEnds(poller: Poller): Promise<Ends> {
  const listener = listenPolledTcp(LOOPBACK, 1, poller)!;
  const [raw, accepted] = await Promise.all([
    connectPolledTcp(listener.address, NEVER, poller)!,
    listener.accept(),
  ]);
  listener.close();
  const material = { ...all.server, ca: all.ca };
  const trusting = { cert: "", key: "", ca: all.ca };
  const [client, server] = await Promise.all([
    doHandshake(
      raw,
      new SecureSession(clientContext({ material: trusting }), {
        serverName: "localhost",
      }),
      NEVER,
    ),
    doHandshake(
      accepted,
      new SecureSession(serverContext({ material })),
      NEVER,
    ),
  ]);
  return { client, server, raw };
}

/** A test with each way to wait; nobody may wait when it is over. */
function test(name: string, use: (ends: Ends) => Promise<void>): void {
  for (const [waits, waiter] of Object.entries(WAKEUPS)) {
    Deno.test({
      name: `${name} (${waits})`,
      ignore: LIBSSL === undefined,
      fn: async () => {
        const poller = pollerWith(waiter);
        await use(await secureEnds(poller));
        assertEquals(poller.wakeupKind, undefined, "somebody still waits");
        assertEquals(LIBSSL!.ERR_peek_last_error(), 0n);
      },
    });
  }
}

const bytes = new Uint8Array(new Prng(5).bytes(8 << 20));

test("a reset that only the writer sees is one, too", async ({ client, server }) => {
  const conduit = conduitOf(server);
  const writer = new Listener(conduit);
  while (conduit.write(bytes.subarray(0, 65_536)) > 0) await settled();
  client.reset();
  assertEquals((await writer.closed()).kind, "reset");
});

test("what is half a record when the peer is cut off is lost", async ({ client, server, raw }) => {
  const listener = new Listener(conduitOf(server));
  raw.write(new Uint8Array([23, 3, 3, 1, 0, 1, 2, 3]));
  raw.closeWrite();
  assertEquals((await listener.closed()).kind, "lost");
  assertEquals(listener.receivedBytes, 0);
  client.close();
});

test("bytes that are no record end it, and the peer is told", async ({ client, server, raw }) => {
  const listener = new Listener(conduitOf(server));
  raw.write(new TextEncoder().encode("GET / HTTP/1.1\r\n\r\n"));
  const end = await listener.closed();
  assertEquals(end.kind, "lost");
  const answer = await new Socket(client).fill().catch((error) => error);
  assertEquals(answer.name, "SslError", `${answer}`);
  client.close();
});

for (const [waits, waiter] of Object.entries(WAKEUPS)) {
  Deno.test({
    name: `any order of writes, ends and resets is over at last (${waits})`,
    ignore: LIBSSL === undefined,
    fn: async () => {
      const poller = pollerWith(waiter);
      await inAnyOrder(40, false, async () => {
        const { client, server } = await secureEnds(poller);
        return [client, server];
      });
      assertEquals(poller.wakeupKind, undefined);
    },
  });
}
