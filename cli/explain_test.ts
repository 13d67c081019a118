import { assert, assertEquals, assertThrows } from "@std/assert";
import { CODES } from "../proto/codes/codes.ts";
import { codesIn, EXPLAIN_COMMAND } from "./explain.ts";
import { ExitCode } from "./program/exit_codes.ts";
import { UsageError } from "./flags/usage_error.ts";
import { ran } from "../tests/support/program/command_line.ts";

Deno.test("a code is found however it is written", () => {
  for (
    const text of [
      "TUN503",
      "tun503",
      "503",
      "target-refused",
      "TARGET-REFUSED",
      "[TUN503]",
      '2026-11-22T10:00:00.000Z WARNING agent nothing listens code=TUN503 node="a"',
      "tunnel dial: dial tcp 127.0.0.1:9: connect: connection refused [TUN503]",
      "code TUN-503?",
    ]
  ) assertEquals(codesIn([text]), ["TUN503"], text);
  assertEquals(codesIn(["it", "says", "TUN503"]), ["TUN503"]);
});

Deno.test("an older code, and its name, mean what took its place", () => {
  assertEquals(codesIn(["code=TUN105 level=error"]), ["TUN101"]);
  assertEquals(codesIn(["flags-contradict"]), ["TUN101"]);
  assertEquals(codesIn(["TUN901 TUN903"]), ["TUN904"]);
});

Deno.test("each code of a pasted text is explained once", () => {
  assertEquals(codesIn(["TUN503 TUN501\nTUN503 TUN999"]), ["TUN503", "TUN501"]);
});

Deno.test("what is no code is answered with the nearest", () => {
  const error = assertThrows(() => codesIn(["target-refusd"]), UsageError);
  assert(error.message.includes("did you mean target-refused, TUN503?"));
  assertEquals(error.tunnelCode, "TUN101");
  const other = assertThrows(() => codesIn(["TUN936"]), UsageError);
  assert(/did you mean TUN9\d\d\?/.test(other.message), other.message);
  assertThrows(() => codesIn(["xTUN5031"]), UsageError);
  assertThrows(() => codesIn([""]), UsageError, "wanted a code");
  const long = assertThrows(() => codesIn(["x".repeat(9_000)]), UsageError);
  assert(long.message.length < 300);
});

Deno.test("tunnel explain says why and what to do", async () => {
  const { code, output } = await explain("tun503");
  assertEquals(code, ExitCode.OK);
  assert(output.startsWith("TUN503  The target refuses the connection\n"));
  assert(output.includes("\nWhat to do:\n  - On the node: `ss -ltn`"));
  for (const line of output.split("\n")) assert(line.length <= 80, line);
});

Deno.test("tunnel explain -o json is for machines", async () => {
  const { output } = await explain("-o", "json", "tun503");
  const [row] = JSON.parse(output);
  assertEquals(row.code, "TUN503");
  assertEquals(row.slug, "target-refused");
  const all = JSON.parse((await explain("--all", "--output=json")).output);
  assertEquals(all.length, Object.keys(CODES).length);
  assertEquals((await explain("--all", "x")).code, ExitCode.USAGE);
});

function explain(...argv: string[]) {
  return ran(EXPLAIN_COMMAND.run, argv);
}
