import { assertEquals } from "@std/assert";
import { PEER_TEXT_MAX, peerText } from "./page/peer_text.ts";

Deno.test("what a peer says is short, on one line, and turns nothing round", () => {
  assertEquals(peerText("edge-7"), "edge-7");
  assertEquals(peerText("<b>"), "<b>");
  assertEquals(peerText("a\nb\u0000"), "a\\u000ab\\u0000");
  assertEquals(peerText("\u202egnp.exe"), "\\u202egnp.exe");
  assertEquals(peerText("ناقل"), "ناقل");
  assertEquals(peerText("\ud800"), "\ufffd");
  assertEquals(peerText("x".repeat(1024)).length, PEER_TEXT_MAX + 1);
});
