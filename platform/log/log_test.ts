import { assertEquals, assertMatch } from "@std/assert";
import { FakeTimers } from "../../tests/support/memory/fake_timers.ts";
import { type LogFormat, openLog } from "./log.ts";

/** What is written to stderr while `run` runs. */
function written(
  options: { format: LogFormat; level: number; timers?: FakeTimers },
  run: (log: ReturnType<typeof openLog>) => void,
): string {
  const original = Deno.stderr.writeSync;
  let text = "";
  Deno.stderr.writeSync = (bytes) => {
    text += new TextDecoder().decode(bytes);
    return bytes.length;
  };
  try {
    run(openLog("server", options));
  } finally {
    Deno.stderr.writeSync = original;
  }
  return text;
}

Deno.test("a line of text has time, level, message and fields", () => {
  const text = written(
    { format: "text", level: 2 },
    (log) => log.event("agent linked", { agent: "a 1", links: 2 }),
  );
  assertMatch(
    text,
    /^\d{4}-\d\d-\d\dT[\d:.]+Z INFO agent linked agent="a 1" links=2\n$/,
  );
});

Deno.test("a missing right is told as a fault of ours", () => {
  const text = written(
    { format: "text", level: 2 },
    (log) =>
      log.warn(
        'Cannot ask: Requires net access to "a:1", run again with the ' +
          "--allow-net flag",
        { code: "TUN802", server: "a:1" },
      ),
  );
  assertMatch(
    text,
    /\(net "a:1"\); please report it code=TUN907 server=a:1\n$/,
  );
});

Deno.test("a line of JSON is one object", () => {
  const text = written(
    { format: "json", level: 2 },
    (log) =>
      log.warn("braces {stay} as they are", { agent: "a1", code: "TUN402" }),
  );
  const record = JSON.parse(text);
  assertEquals(record.message, "braces {stay} as they are");
  assertEquals(record.properties, { agent: "a1", code: "TUN402" });
  assertEquals(record.level, "WARN");
});

Deno.test("--v decides what is written", () => {
  const lines = (level: number) =>
    written({ format: "text", level }, (log) => {
      log.error("e", { code: "TUN402" });
      log.warn("w", { code: "TUN402" });
      log.info("i");
      log.event("v");
      log.detail("d");
      log.packet("p");
    }).split("\n").length - 1;
  assertEquals([0, 1, 2, 4, 9, 10].map(lines), [2, 3, 4, 5, 5, 6]);
});

Deno.test("a level that is set counts from the next line on", () => {
  const text = written({ format: "text", level: 0 }, (log) => {
    log.event("one");
    log.level = 10;
    log.event("two");
    assertEquals(log.wantsPackets, true);
    log.level = 1;
    log.event("three");
    assertEquals(log.wantsPackets, false);
  });
  assertMatch(text, /^\S+ INFO two\n$/);
});

Deno.test("a peer's words cannot forge a line", () => {
  for (const format of ["text", "json"] as const) {
    const text = written(
      { format, level: 0 },
      (log) =>
        log.error("bad\n2026 INFO all is well\u001b[2J\u202e", {
          code: "TUN402",
          agent: "b\u202eb\n",
        }),
    );
    assertEquals(text.split("\n").length, 2);
    for (const mark of ["\u001b", "\u202e"]) {
      assertEquals(text.includes(mark), false);
    }
  }
});

Deno.test("a peer's words cannot make a line of any length", () => {
  const long = "x".repeat(60_000);
  const text = written(
    { format: "text", level: 0 },
    (log) => log.error(`who is ${long}`, { agent: long, code: "TUN402" }),
  );
  assertEquals(text.length < 6_000, true);
  assertMatch(text, /x… \(56007 more characters\) agent="x+… \(59000 more/);
});

Deno.test("lines of one key that say the same are written once, and then counted", () => {
  const timers = new FakeTimers();
  const text = written({ format: "text", level: 2, timers }, (log) => {
    for (let i = 0; i < 38; i++) {
      log.event(`Cannot link: late by ${i} ms`, { port: i }, "link a");
    }
    log.event("Cannot link: other", {}, "link b");
    log.warn("Cannot link: warned", { code: "TUN402" }, "link a");
    timers.advance(10_000);
  });
  const lines = text.split("\n").filter((line) => line.includes("link: "));
  assertEquals(lines.length, 4);
  assertMatch(lines[0]!, / INFO Cannot link: late by 0 ms port=0$/);
  assertMatch(
    lines[2]!,
    /Cannot link: late by 37 ms \(same, 37 more until \d{4}-[\d:T.-]+Z\) port=37$/,
  );
});

Deno.test("a level that is off holds nothing back", () => {
  const timers = new FakeTimers();
  const text = written({ format: "text", level: 0, timers }, (log) => {
    for (let i = 0; i < 3; i++) log.event("gone", {}, "k");
    assertEquals(timers.pendingCount, 0);
    for (let i = 0; i < 3; i++) log.warn("bad", { code: "TUN402" }, "k");
    log.flush();
    assertEquals(timers.pendingCount, 0);
  });
  assertMatch(
    text,
    /WARNING bad code=TUN402\n.*WARNING bad \(same, 2 more until .*\n$/s,
  );
});
