import { assert, assertEquals, assertThrows } from "@std/assert";
import { CountingObserver } from "../../tests/support/rigs/carrier_rig.ts";
import {
  ConduitProbe,
  settled,
} from "../../tests/support/memory/conduit_probe.ts";
import { ConnectionPair } from "../../tests/support/memory/connection_pair.ts";
import { FakeTimers } from "../../tests/support/memory/fake_timers.ts";
import { ScriptedCallee } from "../../tests/support/watch/packet_script.ts";
import { StatusCode } from "../grpc/status.ts";
import type { Packet } from "../packets/packet.ts";
import { CAPABILITIES_FIELD, PROXY_PATH } from "./capabilities.ts";
import { dialProxy } from "./proxy_client.ts";
import { DialError } from "../peer/dial_error.ts";
import { EARLY_BYTES_MAX, type PendingDial } from "./link.ts";
import { CLOSE_QUIET_MS, CLOSE_RSP_WAIT_MS } from "./quiet_close.ts";

const DIAL_ID = 0x7ff0_e7e7_b7b1_baf2n;
const OURS = { [CAPABILITIES_FIELD]: "half-close,early-data" };

const accepted: Packet = {
  type: "DIAL_RSP",
  error: "",
  connectId: 1n << 60n,
  random: DIAL_ID,
};

const closeResponse = (error: string): Packet => ({
  type: "CLOSE_RSP",
  error,
  connectId: 1n << 60n,
  reset: "",
});

/** Our caller, and a server that says what it is told. */
class Server {
  readonly timers = new FakeTimers();
  readonly callee = new ScriptedCallee();
  readonly observer = new CountingObserver();
  readonly pair: ConnectionPair;
  pending!: PendingDial;
  failed: DialError | undefined;
  conduit: ConduitProbe | undefined;
  overs = 0;

  constructor() {
    this.pair = new ConnectionPair({
      clock: this.timers,
      methods: { [PROXY_PATH]: this.callee.serve },
    });
  }

  async dial(
    options: {
      earlyData?: Uint8Array;
      onSending?: () => void;
      mayLeave?: (leave: () => void) => void;
      protocol?: string;
    } = {},
  ) {
    const { protocol = "tcp", ...rest } = options;
    this.pending = dialProxy(this.pair.client, {
      protocol,
      address: "10.0.0.1:443",
    }, {
      onConnected: (conduit) => {
        this.conduit = new ConduitProbe(conduit);
      },
      onFailed: (error) => void (this.failed = error),
    }, {
      authority: "server",
      timers: this.timers,
      observer: this.observer,
      dialId: DIAL_ID,
      observing: { onOver: () => this.overs++ },
      ...rest,
    });
    await settled();
  }

  async connected(metadata: Record<string, string>): Promise<ConduitProbe> {
    await this.dial();
    this.callee.answer(metadata);
    await this.callee.say(accepted);
    return this.conduit!;
  }
}

Deno.test("a dial says what it wants and what it can do", async () => {
  const server = new Server();
  await server.dial();
  assertEquals(server.callee.packets, [{
    type: "DIAL_REQ",
    protocol: "tcp",
    address: "10.0.0.1:443",
    random: DIAL_ID,
  }]);
  const announced = server.callee.metadata.text(CAPABILITIES_FIELD);
  assert(announced?.includes("half-close"));
});

Deno.test("a refused dial keeps the server's words (TestProxyHandleDialError_GRPC)", async () => {
  const server = new Server();
  await server.dial();
  await server.callee.say({
    type: "DIAL_RSP",
    error: "dial tcp 10.0.0.1:443: connection refused",
    connectId: 0,
    random: DIAL_ID,
  });
  assertEquals(server.failed?.reason, "endpoint");
  assertEquals(
    server.failed?.message,
    "dial tcp 10.0.0.1:443: connection refused",
  );
  assertEquals(server.overs, 1);
});

Deno.test("our server's reason is told apart from its words", async () => {
  const server = new Server();
  await server.dial();
  server.callee.answer({ ...OURS, "tunnel-dial-failure": "no-agent" });
  await server.callee.say({
    type: "DIAL_RSP",
    error: "no agent serves host=node7",
    connectId: 0,
    random: DIAL_ID,
  });
  assertEquals(server.failed?.reason, "no-agent");
});

Deno.test("every way in which a pending dial can end has its reason", async (t) => {
  const ways: Record<string, [(server: Server) => void, string]> = {
    "DIAL_CLS (Closed)": [
      ({ callee }) => callee.say({ type: "DIAL_CLS", random: DIAL_ID }),
      "dial-closed",
    ],
    "an answer for another dial": [
      ({ callee }) => callee.say({ ...accepted, random: 5 } as Packet),
      "endpoint",
    ],
    "CLOSE_RSP": [({ callee }) => callee.say(closeResponse("no")), "endpoint"],
    "a broken link": [({ pair }) => pair.break("cut"), "link-lost"],
    "UNAVAILABLE": [
      ({ callee }) => callee.finish(StatusCode.UNAVAILABLE, "going"),
      "link-lost",
    ],
    "DEADLINE_EXCEEDED": [
      ({ callee }) => callee.finish(StatusCode.DEADLINE_EXCEEDED, "late"),
      "timeout",
    ],
    "an end without an answer": [
      ({ callee }) => callee.finish(StatusCode.OK, ""),
      "endpoint",
    ],
  };
  for (const [name, [end, reason]] of Object.entries(ways)) {
    await t.step(name, async () => {
      const server = new Server();
      await server.dial();
      end(server);
      await settled();
      assertEquals(server.failed?.reason, reason);
      assertEquals(server.overs, 1);
    });
  }
});

Deno.test("a connection that takes no calls fails the dial at once", async () => {
  const server = new Server();
  server.pair.break("cut");
  await server.dial();
  assertEquals(server.failed?.reason, "link-lost");
  assertEquals(server.overs, 1);
});

Deno.test("a cancelled dial is reset and says nothing more", async () => {
  const server = new Server();
  await server.dial();
  server.pending.cancel();
  await settled();
  assertEquals(server.callee.received.at(-1), "cancel");
  assertEquals([server.failed, server.conduit], [undefined, undefined]);
  assertEquals(server.overs, 1);
});

Deno.test("early data leaves with the dial, and once more for a Go server", async (t) => {
  const earlyData = new TextEncoder().encode("GET /");
  await t.step("ours", async () => {
    const server = new Server();
    await server.dial({ earlyData });
    assertEquals(server.callee.received.slice(1), ['DATA 0 "GET /"']);
    server.callee.answer(OURS);
    await server.callee.say(accepted);
    assertEquals(server.callee.received.length, 2);
  });
  await t.step("Go", async () => {
    const server = new Server();
    await server.dial({ earlyData });
    await server.callee.say(accepted);
    await server.conduit!.send(" HTTP/1.1");
    assertEquals(server.callee.received.slice(1), [
      'DATA 0 "GET /"',
      'DATA 1152921504606846976 "GET /"',
      'DATA 1152921504606846976 " HTTP/1.1"',
    ]);
  });
  await t.step("but not more than a callee can hold", () => {
    const earlyData = new Uint8Array(EARLY_BYTES_MAX + 1);
    assertThrows(
      () =>
        dialProxy(
          new Server().pair.client,
          { protocol: "tcp", address: "a:1" },
          { onConnected() {}, onFailed() {} },
          {
            authority: "",
            timers: new FakeTimers(),
            dialId: 1,
            earlyData,
          },
        ),
      RangeError,
    );
  });
});

Deno.test("early data waits until the callee lives or has answered, where it is to be asked for", async (t) => {
  const earlyData = new TextEncoder().encode("GET /");
  let sent = 0;
  const onSending = () => sent++;
  await t.step("it follows when it may", async () => {
    const server = new Server();
    let leave = () => {};
    const mayLeave = (then: () => void) => leave = then;
    await server.dial({ earlyData, onSending, mayLeave });
    assertEquals([server.callee.received.length, sent], [1, 0]);
    leave();
    await settled();
    assertEquals(server.callee.received.slice(1), ['DATA 0 "GET /"']);
    server.callee.answer(OURS);
    await server.callee.say(accepted);
    leave();
    await settled();
    assertEquals([server.callee.received.length, sent], [2, 1]);
  });
  await t.step("and with the answer at the latest", async () => {
    const server = new Server();
    await server.dial({ earlyData, onSending, mayLeave: () => {} });
    server.callee.answer(OURS);
    await server.callee.say(accepted);
    await server.conduit!.send(" HTTP/1.1");
    assertEquals(server.callee.received[1], 'DATA 0 "GET /"');
    assertEquals([server.callee.received.length, sent], [3, 2]);
  });
  await t.step("or nothing leaves, and the dial has failed", async () => {
    const server = new Server();
    const refusal = new DialError("cancelled", "another one has it");
    await server.dial({
      earlyData,
      onSending: () => {
        throw refusal;
      },
    });
    await settled();
    assertEquals(server.failed, refusal);
    assertEquals(server.callee.received.slice(1), ["cancel"]);
  });
});

Deno.test("what is said before the answer goes ahead, up to the limit", async (t) => {
  const more = new Uint8Array(EARLY_BYTES_MAX);
  const start = async () => {
    const server = new Server();
    await server.dial({ earlyData: new TextEncoder().encode("GET /") });
    const taken = [
      server.pending.sendEarly!(more),
      server.pending.sendEarly!(more),
    ];
    assertEquals(taken, [EARLY_BYTES_MAX - 5, 0]);
    await settled();
    assertEquals(server.callee.bytes, EARLY_BYTES_MAX);
    return server;
  };
  await t.step("towards a server of ours, once", async () => {
    const server = await start();
    server.callee.answer(OURS);
    await server.callee.say(accepted);
    assertEquals(server.callee.bytes, EARLY_BYTES_MAX);
    assertEquals(server.pending.sendEarly!(more), 0, "the answer is there");
  });
  await t.step("towards a Go server, twice", async () => {
    const server = await start();
    await server.callee.say(accepted);
    assertEquals(server.callee.bytes, 2 * EARLY_BYTES_MAX);
  });
  await t.step("datagrams whole, or not at all", async () => {
    const server = new Server();
    await server.dial({ protocol: "udp", earlyData: new Uint8Array(1) });
    assertEquals(server.pending.sendEarly!(more), 0);
    assertEquals(server.pending.sendEarly!(more.subarray(0, 9)), 9);
  });
});

Deno.test("a status other than OK is counted, before the answer and after", async () => {
  const server = new Server();
  await server.dial();
  await server.callee.finish(StatusCode.UNAVAILABLE, "going");
  assertEquals(server.observer.failures, [StatusCode.UNAVAILABLE]);
  const other = new Server();
  const conduit = await other.connected({});
  other.callee.finish(StatusCode.ABORTED, "RST");
  await conduit.closed;
  assertEquals(other.observer.failures, [StatusCode.ABORTED]);
});

Deno.test("our server receives END_STREAM, and its status is the end", async () => {
  const server = new Server();
  const conduit = await server.connected(OURS);
  conduit.send("up");
  await conduit.finish();
  assertEquals(server.callee.received.at(-1), "half-close");
  await server.callee.data(accepted.connectId, "down");
  assertEquals([conduit.text, conduit.end], ["down", undefined]);
  server.callee.finish(StatusCode.OK, "");
  assertEquals(await conduit.closed, { kind: "clean" });
  assertEquals(conduit.hasEnded, true);
});

Deno.test("a Go server receives CLOSE_REQ once nothing moves any more", async () => {
  const server = new Server();
  const conduit = await server.connected({});
  conduit.send("request");
  conduit.finish();
  server.timers.advance(CLOSE_QUIET_MS - 1);
  await server.callee.data(accepted.connectId, "answer, part 1");
  await server.timers.advance(CLOSE_QUIET_MS);
  assert(!server.callee.received.some((line) => line.startsWith("CLOSE_REQ")));
  await server.timers.advance(CLOSE_QUIET_MS);
  assertEquals(
    server.callee.received.at(-1),
    "CLOSE_REQ 1152921504606846976",
  );
  server.callee.say(closeResponse(""));
  assertEquals(await conduit.closed, { kind: "clean" });
  assertEquals(server.timers.pendingCount, 0);
});

Deno.test("CLOSE_REQ waits while something is left to be read", async () => {
  const server = new Server();
  const conduit = await server.connected({});
  conduit.stopReading();
  await server.callee.data(accepted.connectId, "unread");
  conduit.finish();
  await server.timers.advance(5 * CLOSE_QUIET_MS);
  assertEquals(server.callee.received.length, 1);
  conduit.startReading();
  await server.timers.advance(2 * CLOSE_QUIET_MS);
  assertEquals(server.callee.received.length, 2);
});

Deno.test("a Go server that never answers CLOSE_REQ is not waited for (CloseTimeout)", async () => {
  const server = new Server();
  const conduit = await server.connected({});
  conduit.finish();
  server.timers.advance(CLOSE_QUIET_MS + CLOSE_RSP_WAIT_MS);
  assertEquals((await conduit.closed).kind, "reset");
});

Deno.test("CLOSE_RSP of a Go server ends both directions", async (t) => {
  await t.step("in order", async () => {
    const server = new Server();
    const conduit = await server.connected({});
    server.callee.data(accepted.connectId, "bye");
    server.callee.say(closeResponse(""));
    await conduit.ended;
    assertEquals([conduit.text, conduit.end], ["bye", undefined]);
    conduit.finish();
    assertEquals(await conduit.closed, { kind: "clean" });
  });
  await t.step("so that what is written then cannot arrive", async () => {
    const server = new Server();
    const conduit = await server.connected({});
    server.callee.say(closeResponse(""));
    await conduit.ended;
    conduit.send("too late");
    assertEquals((await conduit.closed).kind, "reset");
  });
  await t.step("by a reset when it carries an error", async () => {
    const server = new Server();
    const conduit = await server.connected({});
    server.callee.say(closeResponse("unrecognized connectID"));
    assertEquals(await conduit.closed, {
      kind: "reset",
      reason: "unrecognized connectID",
    });
    assertEquals(conduit.hasEnded, false);
  });
});

Deno.test("an empty DATA is nothing, and DATA_END is an end", async () => {
  const server = new Server();
  const conduit = await server.connected(OURS);
  await server.callee.data(accepted.connectId, "");
  assertEquals([conduit.hasEnded, conduit.chunks.length], [false, 0]);
  server.callee.say({ type: "DATA_END", connectId: accepted.connectId });
  await conduit.ended;
  await conduit.send("the way in is open");
  assertEquals(server.callee.received.at(-1)?.endsWith('open"'), true);
});

Deno.test("ABORTED is a reset, UNAVAILABLE and a broken link are a loss", async () => {
  const ends: [(server: Server) => void, string][] = [
    [({ callee }) => callee.finish(StatusCode.ABORTED, "RST"), "reset RST"],
    [
      ({ callee }) => callee.finish(StatusCode.UNAVAILABLE, "gone"),
      "lost gone",
    ],
    [({ pair }) => pair.break("cut"), "lost cut"],
  ];
  for (const [end, wanted] of ends) {
    const server = new Server();
    const conduit = await server.connected(OURS);
    end(server);
    const closed = await conduit.closed;
    assert(closed.kind !== "clean");
    assertEquals(`${closed.kind} ${closed.reason}`, wanted);
    assertEquals(server.overs, 1);
  }
});

Deno.test("data for another connection ends the call", async () => {
  const server = new Server();
  const conduit = await server.connected({});
  server.callee.data(5, "not mine");
  assertEquals((await conduit.closed).kind, "reset");
  assertEquals(conduit.text, "");
});
