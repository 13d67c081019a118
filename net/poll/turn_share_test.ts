import { assert, assertEquals } from "@std/assert";
import { POLL_TURN_MS, SHARE_BYTES_MIN, TurnShare } from "./turn_share.ts";

Deno.test("what is dear comes in smaller and smaller shares, what is cheap in larger ones", () => {
  const share = new TurnShare();
  const first = share.bytes;
  for (let index = 0; index < 20; index++) {
    share.took(share.bytes, POLL_TURN_MS * 2);
  }
  assertEquals(share.bytes, SHARE_BYTES_MIN);
  for (let index = 0; index < 20; index++) share.took(share.bytes, 0);
  assert(share.bytes > first);
});

Deno.test("a short read says nothing about long ones", () => {
  const share = new TurnShare();
  const before = share.bytes;
  for (let index = 0; index < 20; index++) share.took(1, 0);
  assertEquals(share.bytes, before);
});

Deno.test("many cheap shares are a turn together", () => {
  const share = new TurnShare();
  const turns = Array.from(
    { length: 8 },
    () => share.took(1, POLL_TURN_MS / 4),
  );
  assertEquals(turns.filter((isOver) => isOver).length, 2);
});
