import { assert, assertEquals } from "@std/assert";
import {
  RECENT_EVENT_LENGTH_MAX,
  RECENT_EVENTS_MAX,
  RecentEvents,
  withEvents,
} from "./recent_events.ts";
import type { Log } from "./log.ts";

const ALL = { limit: 1_000_000 };

Deno.test("what repeats itself is counted, whatever port it comes from", () => {
  let nowMs = Date.parse("2026-01-02T03:04:05Z");
  const events = new RecentEvents(() => nowMs);
  events.note("refused", "10.0.0.7:4711: no certificate");
  nowMs += 1_000;
  events.note("linked", "agent linked", { node: "edge-7", code: "TUN202" });
  events.note("refused", "10.0.0.7:4712: no certificate");
  events.note("refused", "10.0.0.8:4712: no certificate");
  const listed = events.list(ALL);
  assertEquals(listed.map(({ message, times }) => [message, times]), [
    ["10.0.0.8:4712: no certificate", undefined],
    ["10.0.0.7:4711: no certificate", 2],
    ["agent linked", undefined],
  ]);
  assertEquals(listed[1]!.at, "2026-01-02T03:04:06.000Z");
  assertEquals(
    events.repeated("refused", 0).map(({ since }) => since),
    ["2026-01-02T03:04:06.000Z", "2026-01-02T03:04:05.000Z"],
  );
});

Deno.test("events are found by node and by kind, and what is new by number", () => {
  const events = new RecentEvents();
  events.note("linked", "agent linked", { node: "a" });
  events.note("linked", "agent linked", { node: "b" });
  const seen = events.newest;
  events.note("unlinked", "agent gone", { node: "a", code: "TUN401" });
  const found = (query: object) =>
    events.list({ ...ALL, ...query }).map(({ kind, node }) =>
      `${kind} ${node}`
    );
  assertEquals(found({ node: "a" }), ["unlinked a", "linked a"]);
  assertEquals(found({ kind: "linked" }), ["linked b", "linked a"]);
  assertEquals(found({ after: seen }), ["unlinked a"]);
  assertEquals(events.list({ limit: 1 })[0]!.code, "TUN401");
});

Deno.test("neither many events nor long ones fill memory, and refusals push out no link", () => {
  const events = new RecentEvents();
  events.note("linked", "agent linked", { node: "a" });
  for (let index = 0; index < RECENT_EVENTS_MAX + 5; index++) {
    events.note("refused", `peer ${index} ${"x".repeat(1_000)}`);
  }
  const listed = events.list(ALL);
  assertEquals(listed.length, RECENT_EVENTS_MAX + 1);
  assertEquals(listed[0]!.message.length, RECENT_EVENT_LENGTH_MAX);
  assertEquals(events.list({ ...ALL, node: "a" }).length, 1);
});

Deno.test("what is kept of a long text keeps no more of it in memory", () => {
  const events = new RecentEvents();
  const megabyte = new Uint8Array(1_000_000).fill(97);
  const beforeBytes = Deno.memoryUsage().heapUsed;
  for (let index = 0; index < 300; index++) {
    // Long enough to be a text of its own: letters, for numbers may be left out.
    const letters = index.toString(2).replaceAll("0", "o").replaceAll("1", "i");
    new TextEncoder().encodeInto(`${letters}-`, megabyte);
    const text = new TextDecoder().decode(megabyte);
    events.note("linked", `linked by ${text}`, { node: text });
  }
  assertEquals(events.list(ALL).length, 300);
  const grownBytes = Deno.memoryUsage().heapUsed - beforeBytes;
  assert(grownBytes < 200_000_000, `${grownBytes} bytes`);
});

Deno.test("warnings of a log are noted, and lines that are known, at any level", () => {
  const events = new RecentEvents();
  const written: string[] = [];
  const write = (message: string) => void written.push(message);
  const silent: Log = {
    ...{ error: write, warn: write, info: write, event: write },
    ...{ detail: write, packet: write },
    wantsDetails: true,
    wantsPackets: false,
  };
  const log = withEvents(silent, events, [["node joined", "joined"]]);
  log.warn("a certificate expires", { node: "edge-7", code: "TUN202" });
  log.event("node joined", { node: "edge-8" });
  log.event("something else");
  log.detail("connection opened");
  assertEquals(
    events.list(ALL).map(({ kind, node }) => [kind, node]),
    [["joined", "edge-8"], ["warning", "edge-7"]],
  );
  assertEquals(written.length, 4);
  assertEquals([log.wantsDetails, log.wantsPackets], [true, false]);
});
