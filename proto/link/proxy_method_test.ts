import { assert, assertEquals } from "@std/assert";
import { CountingObserver } from "../../tests/support/carrier_rig.ts";
import { ConduitProbe, settled } from "../../tests/support/conduit_probe.ts";
import { StatusCode } from "../grpc/status.ts";
import { ConnectionPair } from "../../tests/support/connection_pair.ts";
import { FakeTimers } from "../../tests/support/fake_timers.ts";
import { MemoryConduit } from "../../tests/support/memory_conduit.ts";
import { ScriptedCaller } from "../../tests/support/packet_script.ts";
import { GrpcRouter } from "../grpc/server.ts";
import type { Int64, Packet } from "../packets/packet.ts";
import type { ConnectionOptions } from "../streams/connection_events.ts";
import { LARGE_FRAME_SIZE } from "../streams/settings.ts";
import { CAPABILITIES_FIELD } from "./capabilities.ts";
import type { DialAnswer } from "./dial_handler.ts";
import { PROXY_PATH } from "./dial_proxy.ts";
import { DialError } from "./link.ts";
import { LINGER_MS, LINGER_OCTETS_MAX } from "./packet_conduit.ts";
import { DATAGRAM_KEPT_OCTETS_MAX } from "./send_packet.ts";
import { DIAL_REQ_WAIT_MS, HOLD_MS, proxyMethod } from "./proxy_method.ts";

/** Beyond what a number can hold. */
const RANDOM = 0x7ff0_e7e7_b7b1_baf2n;

const dialRequest: Packet = {
  type: "DIAL_REQ",
  protocol: "tcp",
  address: "10.0.0.1:443",
  random: RANDOM,
};

const udpRequest: Packet = { ...dialRequest, protocol: "udp" };

const closeRequest = (connectId: Int64): Packet => ({
  type: "CLOSE_REQ",
  connectId,
  reset: "",
});

/** Our callee, a target, and callers that say what they are told. */
class Frontend {
  readonly timers = new FakeTimers();
  readonly observer = new CountingObserver();
  readonly answers: DialAnswer[] = [];
  readonly pair: ConnectionPair;
  cancelled = 0;

  constructor(client: Partial<ConnectionOptions> = {}) {
    const router = new GrpcRouter({
      timers: this.timers,
      methods: {
        [PROXY_PATH]: proxyMethod({
          timers: this.timers,
          observer: this.observer,
          onDial: (_target, answer) => {
            this.answers.push(answer);
            return { cancel: () => void this.cancelled++ };
          },
        }),
      },
    });
    this.pair = new ConnectionPair({
      clock: this.timers,
      client,
      onStream: (stream) => router.accept(stream),
    });
  }

  goCaller(): ScriptedCaller {
    return new ScriptedCaller(this.pair.client, PROXY_PATH);
  }

  ourCaller(): ScriptedCaller {
    return new ScriptedCaller(this.pair.client, PROXY_PATH, {
      [CAPABILITIES_FIELD]: "half-close",
    });
  }

  /** Answers the newest dial with a target. */
  connect(datagrams = false): ConduitProbe {
    const [near, far] = MemoryConduit.pair({ datagrams });
    const target = new ConduitProbe(far);
    this.answers.at(-1)!.connected(near);
    return target;
  }

  /** A connected Go caller and its target. */
  async dialled(): Promise<{ caller: ScriptedCaller; target: ConduitProbe }> {
    const caller = this.goCaller();
    caller.say(dialRequest);
    await settled();
    const target = this.connect();
    await settled();
    return { caller, target };
  }
}

Deno.test("random is echoed to the bit and connectIDs count up", async () => {
  const frontend = new Frontend();
  const { caller } = await frontend.dialled();
  const other = await frontend.dialled();
  assertEquals(caller.packets, [
    { type: "DIAL_RSP", error: "", connectId: 1, random: RANDOM },
  ]);
  assertEquals(other.caller.heard, ["DIAL_RSP 2 ok"]);
});

Deno.test("a failed dial tells its text, and its reason to those who read it", async () => {
  const frontend = new Frontend();
  const caller = frontend.goCaller();
  caller.say(dialRequest);
  await settled();
  frontend.answers[0]!.failed(new DialError("no-agent", "No agent available"));
  await settled();
  assertEquals(caller.heard, ["DIAL_RSP 0 No agent available", "status OK"]);
  assertEquals(caller.metadata.text("tunnel-dial-failure"), "no-agent");
});

Deno.test("DATA before a dial is answered (TestServerProxyNoDial)", async () => {
  const caller = new Frontend().goCaller();
  caller.data(1, "too early");
  await settled();
  assertEquals(caller.heard, [
    "CLOSE_RSP 1 backend not initialized",
    "status INVALID_ARGUMENT backend not initialized",
  ]);
});

Deno.test("CLOSE_REQ before a dial is answered and the call goes on", async () => {
  const frontend = new Frontend();
  const caller = frontend.goCaller();
  caller.say(closeRequest(7), dialRequest);
  await settled();
  frontend.connect();
  await settled();
  assertEquals(caller.heard, [
    "CLOSE_RSP 7 backend uninitialized",
    "DIAL_RSP 1 ok",
  ]);
});

Deno.test("DATA for another connection ends the call (TestServerProxyConnectionMismatch)", async () => {
  const { caller, target } = await new Frontend().dialled();
  caller.data(99, "for whom");
  await settled();
  assertEquals(caller.heard.slice(1), [
    "CLOSE_RSP 99 mismatched connection IDs",
    "status INVALID_ARGUMENT mismatched connection IDs",
  ]);
  assertEquals(target.end?.kind, "reset");
});

Deno.test("a second DIAL_REQ is refused and the first connection goes on", async () => {
  const frontend = new Frontend();
  const { caller, target } = await frontend.dialled();
  caller.say(dialRequest);
  caller.data(1, "still here");
  await settled();
  assertEquals(frontend.answers.length, 1);
  assert(caller.heard[1]!.startsWith("DIAL_RSP 0 Cannot dial twice"));
  assertEquals(target.text, "still here");
});

Deno.test("octets that are no packet are INVALID_ARGUMENT", async () => {
  const frontend = new Frontend();
  const { caller, target } = await frontend.dialled();
  caller.call.sendMessage(Uint8Array.of(0x0a, 0xff, 0xff));
  await settled();
  assert(caller.heard[1]!.startsWith("status INVALID_ARGUMENT Cannot"));
  assertEquals(target.end?.kind, "reset");
});

Deno.test("unknown packet types are ignored", async () => {
  const { caller, target } = await new Frontend().dialled();
  caller.say({ type: "UNKNOWN", code: 77 });
  caller.data(1, "and on");
  await settled();
  assertEquals(target.text, "and on");
});

Deno.test("DIAL_CLS gives the pending dial up (TestProxyDial_RequestCancelled_GRPC)", async () => {
  const frontend = new Frontend();
  const caller = frontend.goCaller();
  caller.say(dialRequest, { type: "DIAL_CLS", random: 5 });
  await settled();
  assertEquals(frontend.cancelled, 0);
  caller.say({ type: "DIAL_CLS", random: RANDOM });
  await settled();
  assertEquals(frontend.cancelled, 1);
  assertEquals(caller.heard, ["status OK"]);
});

Deno.test("a caller that goes during the dial cancels it", async () => {
  for (const leave of ["cancel", "halfClose"] as const) {
    const frontend = new Frontend();
    const caller = frontend.goCaller();
    caller.say(dialRequest);
    await settled();
    caller.call[leave]();
    await settled();
    assertEquals(frontend.cancelled, 1, leave);
    const target = frontend.connect();
    await settled();
    assertEquals(target.end?.kind, "reset", "a late answer is put away");
  }
});

Deno.test("a Go caller's connection closes in order (TestServerProxyNormalClose)", async () => {
  const { caller, target } = await new Frontend().dialled();
  caller.data(1, "hello");
  caller.say(closeRequest(1));
  await settled();
  assertEquals(caller.heard, ["DIAL_RSP 1 ok", "CLOSE_RSP 1", "status OK"]);
  assertEquals(target.text, "hello");
  assertEquals(target.hasEnded, true);
  target.send("nobody reads this");
  target.finish();
  assertEquals(await target.closed, { kind: "clean" });
});

Deno.test("what a Go caller sent before it went is delivered", async (t) => {
  const ways: Record<string, (caller: ScriptedCaller, f: Frontend) => void> = {
    "END_STREAM": (caller) => caller.call.halfClose(),
    "RST_STREAM": (caller) => caller.call.cancel(),
    "CLOSE_REQ and RST_STREAM, as kube-apiserver": (caller) => {
      caller.say(closeRequest(1));
      caller.call.cancel();
    },
    "CLOSE_REQ and GOAWAY, as kube-apiserver": (caller, { pair }) => {
      caller.say(closeRequest(1));
      pair.client.shutdown("client transport shutdown");
    },
  };
  for (const [name, leave] of Object.entries(ways)) {
    await t.step(name, async () => {
      const frontend = new Frontend();
      const { caller, target } = await frontend.dialled();
      // Less than a window, so that it has all left when the caller goes.
      caller.data(1, new Uint8Array(50_000));
      await settled();
      caller.data(1, "last words");
      await settled();
      leave(caller, frontend);
      await settled();
      assertEquals(target.receivedOctets, 50_010);
      assertEquals(target.hasEnded, true);
      target.finish();
      assertEquals(await target.closed, { kind: "clean" });
    });
  }
});

Deno.test("a target learns whether its caller has gone or only half-closed", async () => {
  const frontend = new Frontend();
  const endedBy = async (
    caller: ScriptedCaller,
    leave: () => void,
  ): Promise<unknown> => {
    caller.say(dialRequest);
    await settled();
    const [near, far] = MemoryConduit.pair();
    const probe = new ConduitProbe(far);
    const ends: unknown[] = [];
    const end = near.end.bind(near);
    near.end = (isGone?: boolean) => {
      ends.push(isGone);
      end();
    };
    frontend.answers.at(-1)!.connected(near);
    await settled();
    leave();
    await probe.ended;
    return ends;
  };
  const [closing, ending, cancelling] = [
    frontend.goCaller(),
    frontend.goCaller(),
    frontend.goCaller(),
  ];
  const first = await endedBy(closing, () => closing.say(closeRequest(1)));
  assertEquals(first, [true]);
  const leave = () => ending.call.halfClose();
  assertEquals(await endedBy(ending, leave), [true]);
  const giveUp = () => cancelling.call.cancel();
  assertEquals(await endedBy(cancelling, giveUp), [true]);
  const ours = frontend.ourCaller();
  assertEquals(await endedBy(ours, () => ours.call.halfClose()), [false]);
});

Deno.test("what a Go caller sent is delivered to a slow target even when the link breaks", async () => {
  const frontend = new Frontend();
  const { caller, target } = await frontend.dialled();
  target.stopReading();
  caller.data(1, new Uint8Array(60_000));
  caller.data(1, "last words");
  caller.say(closeRequest(1));
  await settled();
  frontend.pair.break("EOF");
  await settled();
  assertEquals(target.end, undefined);
  target.startReading();
  await settled();
  assertEquals(target.receivedOctets, 60_010);
  assertEquals(target.hasEnded, true);
});

Deno.test("a target that goes on after its Go caller went is reset, soon", async (t) => {
  await t.step("when it says too much", async () => {
    const { caller, target } = await new Frontend().dialled();
    caller.say(closeRequest(1));
    await settled();
    target.send(new Uint8Array(LINGER_OCTETS_MAX));
    await settled();
    assertEquals(target.end, undefined);
    target.send("x");
    await settled();
    assertEquals(target.end?.kind, "reset");
  });
  await t.step("when it was waiting for the caller to read", async () => {
    const frontend = new Frontend();
    const { caller, target } = await frontend.dialled();
    caller.isReading = false;
    caller.data(1, "x");
    target.send(new Uint8Array(4 * LINGER_OCTETS_MAX));
    await settled();
    assert(target.queuedOctets > 2 * LINGER_OCTETS_MAX);
    caller.say(closeRequest(1));
    await settled();
    assertEquals(target.end?.kind, "reset");
  });
  await t.step("but not while it reads what came before", async () => {
    const frontend = new Frontend();
    const { caller, target } = await frontend.dialled();
    target.stopReading();
    caller.data(1, new Uint8Array(130_000));
    caller.say(closeRequest(1));
    await settled();
    frontend.timers.advance(LINGER_MS - 1);
    target.startReading();
    target.stopReading();
    await settled();
    frontend.timers.advance(LINGER_MS - 1);
    assertEquals(target.end, undefined);
    target.startReading();
    await target.ended;
    assertEquals(target.receivedOctets, 130_000);
  });
  await t.step("when it never closes", async () => {
    const frontend = new Frontend();
    const { caller, target } = await frontend.dialled();
    caller.say(closeRequest(1));
    await settled();
    frontend.timers.advance(2 * LINGER_MS);
    await settled();
    assertEquals(target.end?.kind, "reset");
    // What is left is the transport's; nothing of the call.
    assertEquals(frontend.timers.pendingCount, 0);
  });
});

Deno.test("a target's half-close is one empty DATA for a Go caller, whose way in stays open", async () => {
  const { caller, target } = await new Frontend().dialled();
  target.send("all there is");
  target.finish();
  caller.data(1, "x"); // ends the hold
  await settled();
  assertEquals(caller.heard.slice(1), [
    'DATA 1 "all there is"',
    'DATA 1 ""',
  ]);
  caller.data(1, "and the way in");
  await settled();
  assertEquals(target.text, "xand the way in");
  caller.say(closeRequest(1));
  assertEquals(await target.closed, { kind: "clean" });
  await settled();
  assertEquals(caller.heard.slice(3), ["CLOSE_RSP 1", "status OK"]);
});

Deno.test("a target's half-close is DATA_END for our caller", async () => {
  const frontend = new Frontend();
  const caller = frontend.ourCaller();
  caller.say(dialRequest);
  await settled();
  const target = frontend.connect();
  target.finish();
  await settled();
  assertEquals(caller.heard, ["DIAL_RSP 1 ok", "DATA_END 1"]);
  caller.data(1, "goes on");
  caller.call.halfClose();
  assertEquals(await target.closed, { kind: "clean" });
  await settled();
  assertEquals(target.text, "goes on");
  assertEquals(caller.heard.slice(2), ["status OK"]);
});

Deno.test("an empty DATA of the caller's is harmless", async () => {
  const { caller, target } = await new Frontend().dialled();
  caller.data(1, "");
  caller.data(1, "after");
  await settled();
  assertEquals(target.text, "after");
  assertEquals(target.hasEnded, false);
});

Deno.test("a reset and a loss are told with their reason", async (t) => {
  const words = { reset: "ABORTED", lost: "UNAVAILABLE" } as const;
  for (const kind of ["reset", "lost"] as const) {
    await t.step(`${kind}, to our caller`, async () => {
      const frontend = new Frontend();
      const caller = frontend.ourCaller();
      caller.say(dialRequest);
      await settled();
      frontend.connect().reset("ECONNRESET", kind);
      await settled();
      assertEquals(caller.heard[1], `status ${words[kind]} ECONNRESET`);
    });
    await t.step(`${kind}, to a Go caller`, async () => {
      const { caller, target } = await new Frontend().dialled();
      target.reset("ECONNRESET", kind);
      await settled();
      assertEquals(caller.heard.slice(1), [
        "CLOSE_RSP 1 ECONNRESET",
        `status ${words[kind]} ECONNRESET`,
      ]);
    });
  }
});

Deno.test("what a target says first waits for a Go caller", async (t) => {
  await t.step("until it speaks", async () => {
    const { caller, target } = await new Frontend().dialled();
    target.send("banner");
    await settled();
    assertEquals(caller.heard, ["DIAL_RSP 1 ok"]);
    caller.data(1, "hello");
    await settled();
    assertEquals(caller.heard[1], 'DATA 1 "banner"');
  });
  await t.step("no longer than the hold", async () => {
    const frontend = new Frontend();
    const { caller, target } = await frontend.dialled();
    target.send("banner");
    target.finish();
    await settled();
    frontend.timers.advance(HOLD_MS - 1);
    await settled();
    assertEquals(caller.heard.length, 1);
    frontend.timers.advance(1);
    await settled();
    assertEquals(caller.heard.slice(1), ['DATA 1 "banner"', 'DATA 1 ""']);
  });
  await t.step("even when it says nothing but its end", async () => {
    const frontend = new Frontend();
    const { caller, target } = await frontend.dialled();
    target.finish();
    await settled();
    assertEquals(caller.heard.length, 1);
    frontend.timers.advance(HOLD_MS);
    await settled();
    assertEquals(caller.heard.slice(1), ['DATA 1 ""']);
  });
  await t.step("and never for ours", async () => {
    const frontend = new Frontend();
    const caller = frontend.ourCaller();
    caller.say(dialRequest);
    await settled();
    frontend.connect().send("banner");
    await settled();
    assertEquals(caller.heard, ["DIAL_RSP 1 ok", 'DATA 1 "banner"']);
  });
});

Deno.test("one DATA message of 5 MiB reaches the target", async () => {
  const { caller, target } = await new Frontend().dialled();
  caller.data(1, new Uint8Array(5 * 1024 * 1024));
  await target.received(5 * 1024 * 1024);
});

Deno.test("DATA for Go callers is at most 32 KiB a packet", async () => {
  const { caller, target } = await new Frontend().dialled();
  caller.data(1, "go");
  target.send(new Uint8Array(200_000));
  await settled();
  assertEquals(caller.octets, 200_000);
  assert(caller.heard.length > 200_000 / 32_768);
});

Deno.test("DATA for our callers fills the frame that they take", async () => {
  const frontend = new Frontend({
    settings: { maxFrameSize: LARGE_FRAME_SIZE },
  });
  const caller = frontend.ourCaller();
  caller.say(dialRequest);
  await settled();
  frontend.connect().send(new Uint8Array(65_000));
  await settled();
  assertEquals(caller.octets, 65_000);
  assertEquals(caller.heard.length, 2);
});

Deno.test("no DATA_END stands in front of the status that says it too", async () => {
  const frontend = new Frontend();
  const caller = frontend.ourCaller();
  caller.say(dialRequest);
  await settled();
  const target = frontend.connect();
  caller.call.halfClose();
  await target.ended;
  target.finish();
  await settled();
  assertEquals(caller.heard, ["DIAL_RSP 1 ok", "status OK"]);
});

Deno.test("a DATA message longer than any datagram is dropped whole", async () => {
  const frontend = new Frontend();
  const caller = frontend.goCaller();
  caller.say(udpRequest);
  await settled();
  const target = frontend.connect(true);
  await settled();
  caller.data(1, new Uint8Array(200_000));
  caller.data(1, "short");
  await target.received(5);
  assertEquals(target.text, "short");
  assertEquals(frontend.observer.dropped, 1);
});

Deno.test("datagrams for a caller that takes none are dropped, over a bound", async () => {
  const frontend = new Frontend();
  const caller = frontend.goCaller();
  caller.isReading = false;
  caller.say(udpRequest);
  await settled();
  const target = frontend.connect(true);
  for (let i = 0; i < 100; i++) {
    target.send(new Uint8Array(10_000));
    await settled();
  }
  const kept = 1_000_000 - frontend.observer.dropped * 10_000;
  const window = 65_535;
  assert(kept > DATAGRAM_KEPT_OCTETS_MAX, `${kept}`);
  assert(kept < DATAGRAM_KEPT_OCTETS_MAX + window + 10_000, `${kept}`);
});

Deno.test("a call without a dial ends after a while", async () => {
  const frontend = new Frontend();
  const caller = frontend.goCaller();
  await settled();
  frontend.timers.advance(DIAL_REQ_WAIT_MS);
  await settled();
  assertEquals(caller.heard, [
    "status DEADLINE_EXCEEDED no DIAL_REQ came within 30 s",
  ]);
});

Deno.test("packets are counted by type", async () => {
  const frontend = new Frontend();
  const { caller } = await frontend.dialled();
  caller.data(1, "a");
  caller.say(closeRequest(1));
  await settled();
  assertEquals(Object.fromEntries(frontend.observer.received), {
    DIAL_REQ: 1,
    DATA: 1,
    CLOSE_REQ: 1,
  });
  assertEquals(Object.fromEntries(frontend.observer.sent), {
    DIAL_RSP: 1,
    CLOSE_RSP: 1,
  });
});

Deno.test("calls that end badly are counted by status, once each", async () => {
  const frontend = new Frontend();
  const { failures } = frontend.observer;
  const closed = await frontend.dialled();
  closed.caller.say(closeRequest(1));
  await settled();
  closed.caller.call.cancel();
  await settled();
  assertEquals(failures, []);
  const cancelled = await frontend.dialled();
  cancelled.caller.call.cancel();
  const reset = await frontend.dialled();
  reset.target.reset("ECONNRESET");
  await settled();
  await frontend.dialled();
  frontend.pair.break("EOF");
  await settled();
  assertEquals(failures, [
    StatusCode.CANCELLED,
    StatusCode.ABORTED,
    StatusCode.UNAVAILABLE,
  ]);
});
