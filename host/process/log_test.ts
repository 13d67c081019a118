import { assertEquals, assertMatch } from "@std/assert";
import { type LogFormat, openLog } from "./log.ts";

/** What is written to stderr while `run` runs. */
function written(
  options: { format: LogFormat; level: number },
  run: (log: ReturnType<typeof openLog>) => void,
): string {
  const original = Deno.stderr.writeSync;
  let text = "";
  Deno.stderr.writeSync = (octets) => {
    text += new TextDecoder().decode(octets);
    return octets.length;
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

Deno.test("a line of JSON is one object", () => {
  const text = written(
    { format: "json", level: 2 },
    (log) => log.warn("braces {stay} as they are", { agent: "a1" }),
  );
  const record = JSON.parse(text);
  assertEquals(record.message, "braces {stay} as they are");
  assertEquals(record.properties, { agent: "a1" });
  assertEquals(record.level, "WARN");
});

Deno.test("--v decides what is written", () => {
  const lines = (level: number) =>
    written({ format: "text", level }, (log) => {
      log.error("e");
      log.warn("w");
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
  const text = written(
    { format: "text", level: 0 },
    (log) => log.error("bad\n2026 INFO all is well\u001b[2J"),
  );
  assertEquals(text.split("\n").length, 2);
  assertEquals(text.includes("\u001b"), false);
});
