import { assert, assertEquals } from "@std/assert";
import { SHARE_OCTETS_MIN, TURN_MS, TurnShare } from "./turn_share.ts";

Deno.test("what is dear comes in smaller and smaller shares, what is cheap in larger ones", () => {
  const share = new TurnShare();
  const first = share.octets;
  for (let index = 0; index < 20; index++) {
    share.took(share.octets, TURN_MS * 2);
  }
  assertEquals(share.octets, SHARE_OCTETS_MIN);
  for (let index = 0; index < 20; index++) share.took(share.octets, 0);
  assert(share.octets > first);
});

Deno.test("a short read says nothing about long ones", () => {
  const share = new TurnShare();
  const before = share.octets;
  for (let index = 0; index < 20; index++) share.took(1, 0);
  assertEquals(share.octets, before);
});

Deno.test("many cheap shares are a turn together", () => {
  const share = new TurnShare();
  const turns = Array.from({ length: 8 }, () => share.took(1, TURN_MS / 4));
  assertEquals(turns.filter((isOver) => isOver).length, 2);
});
