import { joinedBytes } from "../../proto/bytes/byte_arrays.ts";
import { assertEquals } from "@std/assert";
import { certificates } from "../../tests/support/certificates/certificates.ts";
import { forAll, Prng } from "../../tests/support/memory/prng.ts";
import {
  testEachEngine,
  type TlsEngine,
} from "../../tests/support/rigs/tls_engines.ts";
import { TlsServer } from "../../tests/support/peers/tls_server.ts";
import { nextTurn } from "../../tests/support/watch/event_loop.ts";
import { Socket } from "../stream/socket.ts";
import type { Stream } from "../stream/stream.ts";
import { tlsClient } from "./tls_client.ts";

/** Who does what, in which order; `turns` lets the other side get ahead. */
type Step = "send" | "end" | "read" | "turns";

testEachEngine(
  "an end is clean whoever ends first and however late it is read",
  async (engine) => {
    const orders: readonly (readonly Step[])[] = [
      ["turns", "end", "turns", "read"],
      ["turns", "end", "read"],
      ["end", "turns", "read"],
      ["end", "read"],
      ["read", "end"],
      ["turns", "read", "turns", "end"],
      ["send", "turns", "end", "turns", "read"],
    ];
    for (const bytes of [0, 1, 500, 1000, 60_000, 300_000]) {
      for (const order of orders) {
        const sent = new Prng(bytes).bytes(bytes);
        for (const who of ["client", "server"] as const) {
          const { ours, theirs } = await connect(engine, who);
          const peer = play(theirs, ["send", "end", "read"], sent, new Prng(1));
          const own = play(ours, order, sent, new Prng(2));
          assertEquals(await own, sent, `${bytes} bytes, ${who}: ${order}`);
          await peer;
          ours.close();
          theirs.close();
        }
      }
    }
  },
);

testEachEngine(
  "no order of reading, writing and ending costs a byte",
  async (engine) => {
    await forAll(150, async (prng) => {
      const { ours, theirs } = await connect(
        engine,
        prng.pick(["client", "server"]),
      );
      const [there, back] = [prng, prng].map((from) =>
        from.bytes(from.pick([0, 1, 500, 5_000, 20_000]))
      );
      const plays = [[ours, there, back], [theirs, back, there]] as const;
      await Promise.all(plays.map(async ([socket, sent, wanted]) => {
        const steps = shuffled(prng);
        const got = await play(socket, steps, sent!, new Prng(prng.seed));
        assertEquals(got, wanted!, `${steps}`);
      }));
      ours.close();
      theirs.close();
    });
  },
);

testEachEngine(
  "our own close ends a read, and what has arrived is forgotten",
  async (engine) => {
    const { ours, theirs } = await connect(engine, "server");
    await theirs.write(new Uint8Array(10));
    const reading = Promise.allSettled([readAll(ours, new Prng(1))]);
    await turns(4);
    ours.close();
    const [end] = await reading;
    assertEquals(end!.status, "rejected");
    theirs.close();
  },
);

async function connect(
  engine: TlsEngine,
  who: "client" | "server",
): Promise<{ ours: Socket; theirs: Socket }> {
  const { ca, client: credentials } = await certificates();
  const accepted = Promise.withResolvers<Stream>();
  await using port = await TlsServer.open(engine, accepted.resolve);
  const secure = await tlsClient(await engine.connect(port.port), {
    tls: engine.tls,
    credentials: { ...credentials, ca },
    serverName: "localhost",
    alpn: ["h2"],
    address: "127.0.0.1:8090",
    signal: new AbortController().signal,
  });
  const client = new Socket(secure);
  const server = new Socket(await accepted.promise);
  // A server that ends without a word has refused the client.
  await server.write(new Uint8Array(1));
  await client.read(new Uint8Array(1));
  return who === "client"
    ? { ours: client, theirs: server }
    : { ours: server, theirs: client };
}

/** Sends before it ends, and is otherwise in any order. */
function shuffled(prng: Prng): Step[] {
  const steps: Step[] = ["send", "end"];
  steps.splice(prng.below(3), 0, "read");
  for (let count = prng.below(4); count > 0; count--) {
    steps.splice(prng.below(steps.length + 1), 0, "turns");
  }
  return steps;
}

/** Takes the steps; reading goes on beside those that follow it. */
async function play(
  socket: Socket,
  steps: readonly Step[],
  bytes: Uint8Array,
  prng: Prng,
): Promise<Uint8Array> {
  let reading: Promise<Uint8Array> | undefined;
  let sending: Promise<void> | undefined;
  for (const step of steps) {
    if (step === "turns") await turns(1 + prng.below(10));
    if (step === "read") reading = readAll(socket, prng);
    // Not waited for: the peer may read only after its own end.
    if (step === "send") sending = socket.writeAll(bytes);
    if (step === "end") {
      const ending = async () => {
        await sending;
        await socket.closeWrite();
      };
      sending = ending();
      if (prng.below(2) === 0 && bytes.length < 10_000) await sending;
    }
  }
  const received = await reading!;
  await sending;
  return received;
}

async function readAll(socket: Socket, prng: Prng): Promise<Uint8Array> {
  const parts: Uint8Array[] = [];
  for (;;) {
    const buffer = new Uint8Array(prng.pick([500, 16_384, 65_536]));
    const count = await socket.read(buffer);
    if (count === null) return joinedBytes(parts);
    parts.push(buffer.subarray(0, count));
    if (prng.below(8) === 0) await turns(1);
  }
}

/** Lets the event loop, and so the other end, go on. */
async function turns(count: number): Promise<void> {
  for (let turn = 0; turn < count; turn++) {
    await nextTurn();
  }
}
