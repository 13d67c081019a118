import { assertEquals } from "@std/assert";
import { Tally } from "./tally.ts";

Deno.test("a key is there while there is one of it, and never less than none", () => {
  const tally = new Tally<string>();
  assertEquals(tally.add("a", -1), 0);
  assertEquals([tally.add("a"), tally.add("a"), tally.add("b")], [1, 2, 1]);
  assertEquals([tally.size, ...tally.keys()], [2, "a", "b"]);
  assertEquals([tally.add("a", -1), tally.add("b", -1)], [1, 0]);
  assertEquals([tally.of("a"), tally.of("b"), tally.size], [1, 0, 1]);
});
