/**
 * What clients say before they are connected: it goes along with the one dial
 * behind which no other one is to come, and to nobody twice.
 *
 * @module
 */

import { assertEquals, assertRejects } from "@std/assert";
import { denoStream } from "../../../net/stream/platform_stream.ts";
import { EARLY_WAIT_MS } from "../../../net/stream/first_bytes.ts";
import {
  ConduitProbe,
  settled,
} from "../../../tests/support/memory/conduit_probe.ts";
import { MemoryConduit } from "../../../tests/support/memory/memory_conduit.ts";
import {
  deadPort,
  ProxyRig,
  service,
} from "../../../tests/support/rigs/proxy_rig.ts";
import { readToEnd, writeAll } from "../../../tests/support/peers/sockets.ts";
import {
  type EndpointDial,
  EndpointDialError,
} from "../endpoints/endpoint_dialer.ts";
import { PromisedReads } from "../../../tests/support/watch/promised_reads.ts";

const KEY = "default/web";
const encode = (text: string) => new TextEncoder().encode(text);
const decode = (bytes: Uint8Array) => new TextDecoder().decode(bytes);

/** Endpoints that are dialed as those behind agents are. */
class Stage extends ProxyRig {
  readonly ports = [deadPort(), deadPort()] as const;
  /** What came with each dial; `undefined` where it was not to come. */
  readonly early: (string | undefined)[] = [];
  readonly #connected = Promise.withResolvers<ConduitProbe>();

  /** @param count Of endpoints. */
  offers(count: number) {
    return this.serves(service("web"), this.ports.slice(0, count));
  }

  /** What the dials of an endpoint come to; the last goes for all that follow. */
  answers(place: number, ...outcomes: ("refused" | "connected")[]): void {
    this.dialer.answers.set(
      `127.0.0.1:${this.ports[place]}`,
      async ({ takeEarly }: EndpointDial) => {
        const early = await takeEarly?.();
        this.early.push(early && decode(early));
        const outcome = outcomes.length > 1 ? outcomes.shift() : outcomes[0];
        if (outcome === "refused") {
          throw new EndpointDialError("target", "refused");
        }
        const [near, far] = MemoryConduit.pair();
        this.#connected.resolve(new ConduitProbe(far));
        return near;
      },
    );
  }

  /** The far end of the first connection. */
  get far(): Promise<ConduitProbe> {
    return this.#connected.promise;
  }
}

async function assertReset(conn: Deno.Conn) {
  await assertRejects(() => readToEnd(conn), Deno.errors.ConnectionReset);
  conn.close();
}

Deno.test("what a client says at once goes with the dial, what follows behind it, and all is counted", async () => {
  await using stage = new Stage();
  const port = stage.offers(1);
  stage.answers(0, "connected");
  const conn = await stage.connect(KEY);
  await writeAll(conn, encode("hello"));
  const far = await stage.far;
  assertEquals(stage.early, ["hello"]);
  await writeAll(conn, encode(" again"));
  await conn.closeWrite();
  await far.ended;
  assertEquals(decode(far.bytes), " again");
  far.send(encode("answer"));
  far.finish();
  assertEquals(decode(await readToEnd(conn)), "answer");
  assertEquals(port.counts.bytesFromClients, 11);
  const [backend] = port.balancer.backends;
  assertEquals(backend!.bytesSent, 11);
  conn.close();
});

Deno.test("a client that ends at once is dialed for, and its end follows", async () => {
  await using stage = new Stage();
  stage.offers(1);
  stage.answers(0, "connected");
  const conn = await stage.connect(KEY);
  await conn.closeWrite();
  const far = await stage.far;
  assertEquals(stage.early, [""]);
  await far.ended;
  far.send(encode("goodbye"));
  far.finish();
  assertEquals(decode(await readToEnd(conn)), "goodbye");
  conn.close();
});

Deno.test("a client that listens is dialed for after a moment, and receives what the target sends", async () => {
  await using stage = new Stage();
  stage.offers(1);
  stage.answers(0, "connected");
  const conn = await stage.connect(KEY);
  await stage.dialer.dialed(1);
  assertEquals(stage.early, []);
  stage.timers.advance(EARLY_WAIT_MS);
  const far = await stage.far;
  assertEquals(stage.early, [""]);
  far.send(encode("220 ready"));
  const greeting = new Uint8Array(20);
  assertEquals(await conn.read(greeting), 9);
  await writeAll(conn, encode("QUIT"));
  await far.received(4);
  assertEquals(decode(far.bytes), "QUIT");
  conn.close();
});

Deno.test("a client that listens rides the path of one that speaks first", async () => {
  for (const isListening of [false, true]) {
    await using stage = new Stage();
    stage.offers(1);
    stage.answers(0, "connected");
    const conn = await stage.connect(KEY);
    if (!isListening) await writeAll(conn, encode("hello"));
    else {
      await stage.dialer.dialed(1);
      stage.timers.advance(EARLY_WAIT_MS);
    }
    const far = await stage.far;
    await settled();
    using reads = new PromisedReads();
    const bytes = new Uint8Array(300_000).fill(7);
    const sending = writeAll(conn, bytes).then(() => conn.closeWrite());
    await far.ended;
    far.send(bytes);
    far.finish();
    assertEquals((await readToEnd(conn)).length, bytes.length);
    await sending;
    assertEquals([far.bytes.length, reads.count], [bytes.length, 0]);
    conn.close();
  }
});

Deno.test("as long as another endpoint may be tried nothing goes with a dial", async () => {
  await using stage = new Stage();
  stage.offers(2);
  stage.answers(0, "refused");
  stage.answers(1, "connected");
  const conn = await stage.connect(KEY);
  await writeAll(conn, encode("once"));
  const far = await stage.far;
  assertEquals(stage.early, [undefined, "once"]);
  await conn.closeWrite();
  await far.ended;
  assertEquals(decode(far.bytes), "");
  conn.close();
});

Deno.test("what went with a dial that failed goes to nobody else, even if somebody has come", async () => {
  await using stage = new Stage();
  const port = stage.offers(1);
  stage.answers(0, "refused");
  stage.answers(1, "connected");
  const conn = await stage.connect(KEY);
  await stage.dialer.dialed(1);
  stage.offers(2);
  await writeAll(conn, encode("once"));
  await assertReset(conn);
  assertEquals(stage.early, ["once"]);
  assertEquals(port.counts.refused, 1);
});

Deno.test("a client that has sent nothing is dialed for again, and then read from the beginning", async () => {
  await using stage = new Stage();
  stage.offers(1);
  stage.answers(0, "refused");
  stage.answers(1, "connected");
  const conn = await stage.connect(KEY);
  await stage.dialer.dialed(1);
  stage.offers(2);
  stage.timers.advance(EARLY_WAIT_MS);
  const far = await stage.far;
  assertEquals(stage.early, ["", ""]);
  await writeAll(conn, encode("late words"));
  await far.received(10);
  assertEquals(decode(far.bytes), "late words");
  conn.close();
});

Deno.test("a client that goes before it says anything is nobody's failure", async () => {
  await using stage = new Stage();
  const port = stage.offers(1);
  const given = Promise.withResolvers<boolean>();
  stage.dialer.answers.set(
    `127.0.0.1:${stage.ports[0]}`,
    async ({ takeEarly, signal }) => {
      await takeEarly!();
      given.resolve(signal!.aborted);
      throw new EndpointDialError(
        signal!.aborted ? "cancelled" : "target",
        "no",
      );
    },
  );
  const conn = await stage.connect(KEY);
  await stage.dialer.dialed(1);
  denoStream(conn).reset();
  assertEquals(await given.promise, true);
  await settled();
  const [backend] = port.balancer.backends;
  assertEquals([backend!.failuresTotal, port.counts.refused], [0, 1]);
});
