import { assert, assertEquals } from "@std/assert";
import { peerText } from "../page/units.ts";

Deno.test("the page shows text of peers as logs and terminals do, and short", () => {
  assertEquals(peerText("edge-7"), "edge-7");
  assertEquals(peerText("<b>"), "<b>");
  assertEquals(peerText("a\nb\u0000"), "a\\nb\\u0000");
  assertEquals(peerText("\u202egnp.exe"), "\\u202egnp.exe");
  assertEquals(peerText("edge\u200d1"), "edge\\u200d1");
  assertEquals(peerText("edge\u31641\u{e0041}"), "edge\\u31641\\u{e0041}");
  assertEquals(peerText("ناقل"), "ناقل");
  assert(peerText("x".repeat(1024)).length < 300);
});
