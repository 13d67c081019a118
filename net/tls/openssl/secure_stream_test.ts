/**
 * A conduit over OpenSSL at both ends of a TCP connection: what conduits promise
 * (`conduit_contract_test.ts`), and what TLS adds.
 */

import { assert, assertEquals } from "@std/assert";
import { certificates } from "../../../tests/support/certificates/certificates.ts";
import {
  ConduitProbe,
  settled,
} from "../../../tests/support/memory/conduit_probe.ts";
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
import { doHandshake } from "./secure_handshake.ts";

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

function isSame(left: Uint8Array, right: Uint8Array): boolean {
  return left.length === right.length &&
    left.every((byte, at) => byte === right[at]);
}

test("8 MiB go both ways and end cleanly", async ({ client, server }) => {
  const ends = [client, server].map((socket) =>
    new Listener(conduitOf(socket))
  );
  await Promise.all(ends.map(async (end) => {
    await end.send(bytes);
    end.conduit.end();
  }));
  for (const end of ends) {
    assertEquals(await end.closed(), { kind: "clean" });
    assert(isSame(end.received, bytes));
  }
});

test("either half ends while the other goes on", async ({ client, server }) => {
  const [one, other] = [client, server].map((socket) =>
    new Listener(conduitOf(socket))
  );
  one!.conduit.end();
  await other!.until(() => other!.ended);
  assertEquals(other!.end, undefined);
  await other!.send(bytes.subarray(0, 300_000));
  await one!.until(() => one!.receivedBytes === 300_000);
  other!.conduit.end();
  for (const end of [one, other]) {
    assertEquals(await end!.closed(), { kind: "clean" });
  }
});

test("a reader that stops makes the writer stop, and our goodbye waits behind it", async ({ client, server }) => {
  const writer = new Listener(conduitOf(client));
  const reader = new Listener(conduitOf(server), { consume: false });
  let taken = 0;
  // Until nothing is taken although the kernel has had its turns.
  for (let quiet = 0; quiet < 20;) {
    const count = writer.conduit.write(bytes.subarray(0, 65_536));
    taken += count;
    quiet = count === 0 ? quiet + 1 : 0;
    assert(taken < 64 << 20, "nobody stops it");
    await settled();
  }
  writer.conduit.end();
  await settled();
  assertEquals(writer.end, undefined);
  let consumed = 0;
  while (!reader.ended) {
    reader.conduit.consumed(reader.receivedBytes - consumed);
    consumed = reader.receivedBytes;
    await reader.until(() => reader.ended || reader.receivedBytes > consumed);
  }
  assertEquals(reader.receivedBytes, taken);
  reader.conduit.end();
  for (const end of [reader, writer]) {
    assertEquals(await end.closed(), { kind: "clean" });
  }
});

test("a reset is one for the peer", async ({ client, server }) => {
  const listener = new Listener(conduitOf(server));
  const conduit = conduitOf(client);
  const own = new Listener(conduit);
  conduit.reset("enough");
  assertEquals(await own.closed(), { kind: "reset", reason: "enough" });
  assertEquals((await listener.closed()).kind, "reset");
});

test("a reset that only the writer sees is one, too", async ({ client, server }) => {
  const conduit = conduitOf(server);
  const writer = new Listener(conduit);
  while (conduit.write(bytes.subarray(0, 65_536)) > 0) await settled();
  client.reset();
  assertEquals((await writer.closed()).kind, "reset");
});

test("a peer that is cut off without a goodbye is lost", async ({ client, server, raw }) => {
  const listener = new Listener(conduitOf(server));
  await client.write(bytes.subarray(0, 10));
  await listener.until(() => listener.receivedBytes === 10);
  // Below TLS, which says nothing.
  await raw.closeWrite();
  assertEquals(await listener.closed(), {
    kind: "lost",
    reason: "TLS connection was cut off without a goodbye",
  });
  client.close();
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
      const seeds = Prng.fromEnvironment();
      for (let run = 0; run < 40; run++) {
        const prng = new Prng(seeds.below(2 ** 32));
        const poller = pollerWith(waiter);
        const { client, server } = await secureEnds(poller);
        try {
          await anyOrder([client, server], prng);
        } catch (cause) {
          throw new Error(`seed ${seeds.seed}, run ${run}`, { cause });
        }
        assertEquals(poller.wakeupKind, undefined);
      }
    },
  });
}

async function anyOrder(
  sockets: readonly Stream[],
  prng: Prng,
): Promise<void> {
  const mayReset = prng.below(3) === 0;
  const ends = sockets.map((socket) => ({
    probe: new ConduitProbe(conduitOf(socket)),
    sent: 0,
    isOver: false,
  }));
  let hasReset = false;
  for (let step = 0; step < 14; step++) {
    const end = prng.pick(ends);
    const { probe } = end;
    switch (prng.below(mayReset ? 9 : 8)) {
      case 0:
        if (!end.isOver) probe.finish();
        end.isOver = true;
        break;
      case 1:
        probe.stopReading();
        break;
      case 2:
      case 3:
        probe.startReading();
        break;
      case 8:
        hasReset ||= probe.end === undefined;
        end.isOver = true;
        probe.reset("enough");
        break;
      default: {
        if (end.isOver || probe.end !== undefined) break;
        const length = prng.pick([1, 1_000, 16_384, 65_536, 400_000]);
        probe.send(bytes.subarray(end.sent, end.sent + length));
        end.sent += length;
      }
    }
    for (let turns = prng.below(4); turns > 0; turns--) await settled();
  }
  for (const end of ends) {
    end.probe.startReading();
    if (!end.isOver && end.probe.end === undefined) end.probe.finish();
  }
  await Promise.all(ends.map(({ probe }) => probe.closed));
  for (const [from, to] of [ends, ends.toReversed()]) {
    const received = to!.probe.bytes;
    assert(isSame(received, bytes.slice(0, received.length)), "other bytes");
    if (hasReset) continue;
    assertEquals(received.length, from!.sent, "bytes are missing");
    assertEquals(to!.probe.end, { kind: "clean" });
  }
}
