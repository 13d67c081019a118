import { assertEquals, assertMatch } from "@std/assert";
import { configureLog, logger, logsPackets } from "./log.ts";

Deno.test("text lines have time, level, part and message", () => {
  const lines = record("text", 0, () => {
    logger("agent").info("Connected to {server}", { server: "10.0.0.1:8091" });
    logger("agent").warn("Lost {count} links", { count: 2 });
    logger("agent").debug("not shown");
  });
  assertEquals(lines.length, 2);
  assertMatch(
    lines[0]!,
    /^\d{4}-.*Z INFO {2}agent: Connected to 10\.0\.0\.1:8091\n$/,
  );
  assertMatch(lines[1]!, / WARN {2}agent: Lost 2 links\n$/);
});

Deno.test("a peer's text cannot forge a line", () => {
  const [line] = record("text", 0, () => {
    logger("server").info("refused {why}", { why: "x\n2026 INFO \u001b[2Jhi" });
  });
  assertMatch(line!, /refused x\\n2026 INFO \\x1b\[2Jhi\n$/);
});

Deno.test("JSON lines carry the properties", () => {
  const [line] = record("json", 0, () => {
    logger("server").error("Cannot dial {target}: {error}", {
      target: "a:1",
      error: new Error("refused"),
      connectId: 2n ** 60n,
    });
  });
  const { time, ...rest } = JSON.parse(line!);
  assertMatch(time, /Z$/);
  assertEquals(rest, {
    level: "error",
    part: "server",
    message: "Cannot dial a:1: refused",
    target: "a:1",
    error: "refused",
    connectId: String(2n ** 60n),
  });
});

Deno.test("more verbosity shows more, packets only at the highest", () => {
  const counts = [0, 1, 3, 4, 9].map((verbosity) =>
    record("text", verbosity, () => {
      const log = logger("x");
      log.info("i");
      log.debug("d");
      log.trace("t");
    }).length
  );
  assertEquals(counts, [1, 2, 2, 3, 3]);
  assertEquals([logsPackets(3), logsPackets(4)], [false, true]);
});

function record(
  format: "text" | "json",
  verbosity: number,
  act: () => void,
): string[] {
  const lines: string[] = [];
  configureLog({ format, verbosity, write: (line) => lines.push(line) });
  act();
  configureLog({ format: "text", verbosity: 0, write: () => {} });
  return lines;
}
