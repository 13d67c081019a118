import { assertEquals } from "@std/assert";
import { DialError } from "../../proto/peer/dial_error.ts";
import type { PacketObserver } from "../../proto/link/link.ts";
import { FakeTimers } from "../../tests/support/memory/fake_timers.ts";
import { RecordedLog } from "../../tests/support/watch/recorded_log.ts";
import { ConnectionLog, withPacketLines } from "./connection_log.ts";

const TARGET = { protocol: "tcp", address: "10.0.0.7:80" };
const FACTS = { who: "CN=alice", from: "10.0.0.3:5000", target: TARGET };

Deno.test("a connection is logged with who, where, how much, how long and how it ended", () => {
  const log = new RecordedLog();
  const timers = new FakeTimers();
  const reported: string[] = [];
  const inner = {
    received: (bytes: number) => reported.push(`received ${bytes}`),
    sent: (bytes: number) => reported.push(`sent ${bytes}`),
    ended: ({ kind }: { kind: string }) => reported.push(kind),
  };
  const connections = new ConnectionLog(log, timers);
  const askedMs = timers.now();
  timers.advance(3);
  const opened = { facts: { ...FACTS, node: "n1" }, openedMs: timers.now() };
  const one = connections.connected({ askedMs }, inner, opened);
  one.sent(3_000);
  one.received(5);
  one.received(6);
  timers.advance(1_000);
  one.ended({ kind: "reset", reason: "gone" });
  const facts = {
    who: "CN=alice",
    from: "10.0.0.3:5000",
    node: "n1",
    target: "tcp 10.0.0.7:80",
  };
  assertEquals(log.lines, [
    {
      level: "detail",
      message: "connection opened",
      fields: { ...facts, ms: 3 },
    },
    {
      level: "detail",
      message: "connection ended",
      fields: {
        ...facts,
        end: "reset",
        reason: "gone",
        bytesToTarget: 3_000,
        bytesFromTarget: 11,
        ms: 1_003,
      },
    },
  ]);
  assertEquals(reported, ["sent 3000", "received 5", "received 6", "reset"]);
});

Deno.test("a failure is logged by default, and one that was wanted is a detail", () => {
  const log = new RecordedLog();
  const connections = new ConnectionLog(log, new FakeTimers());
  connections.failed(new DialError("endpoint", "refused"), {}, FACTS);
  connections.failed(
    new DialError("cancelled", "the caller gave up"),
    {},
    FACTS,
  );
  assertEquals(log.take(), [
    "event: connection failed: refused",
    "detail: connection failed: the caller gave up",
  ]);
});

Deno.test("packets are logged only where they are wanted, and counted always", () => {
  const log = new RecordedLog();
  const counted: string[] = [];
  const observer = withPacketLines<PacketObserver>(
    {
      packetReceived: (type) => counted.push(`from ${type}`),
      packetSent: (type) => counted.push(`to ${type}`),
    },
    log,
    "agent",
  );
  observer.packetReceived("DATA", 5);
  assertEquals(log.take(), []);
  log.wantsPackets = true;
  observer.packetReceived("DATA", 5);
  observer.packetSent("DIAL_REQ", 0);
  assertEquals(log.take(), [
    "packet: DATA from agent: 5 bytes",
    "packet: DIAL_REQ to agent: 0 bytes",
  ]);
  assertEquals(counted, ["from DATA", "from DATA", "to DIAL_REQ"]);
});
