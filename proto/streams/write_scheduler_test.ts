import { assertEquals } from "@std/assert";
import { type WaitingSender, WriteScheduler } from "./sending_side.ts";

class Sender implements WaitingSender {
  hasWindow = true;
  isSparse = false;
  turns = 0;
  onTurn: () => void = () => {};

  takeTurn(): void {
    this.turns++;
    this.onTurn();
  }
}

Deno.test("one that waits without ever sending does not make it spin", () => {
  const scheduler = new WriteScheduler(() => true);
  const idle = new Sender();
  idle.onTurn = () => scheduler.wait(idle);
  scheduler.wait(idle);
  scheduler.run();
  assertEquals(idle.turns, 1);
  scheduler.run();
  assertEquals(idle.turns, 2);
});

Deno.test("every one that waits is asked, though none sends", () => {
  const scheduler = new WriteScheduler(() => true);
  const senders = Array.from({ length: 10 }, () => new Sender());
  for (const sender of senders) scheduler.wait(sender);
  scheduler.run();
  assertEquals(senders.map(({ turns }) => turns), Array(10).fill(1));
  assertEquals(scheduler.waiting, 0);
});

Deno.test("turns stop when the room is used up, and go on where they stopped", () => {
  let room = 3;
  const scheduler = new WriteScheduler(() => room > 0);
  const order: number[] = [];
  const senders = [0, 1].map((index) => {
    const sender = new Sender();
    sender.onTurn = () => {
      order.push(index);
      room--;
      scheduler.sent(sender, 1000);
      scheduler.wait(sender);
    };
    return sender;
  });
  for (const sender of senders) scheduler.wait(sender);
  scheduler.run();
  room = 2;
  scheduler.run();
  assertEquals(order, [0, 1, 0, 1, 0]);
});

Deno.test("a stalled one drops out and is asked again when it comes back", () => {
  const scheduler = new WriteScheduler(() => true);
  const stalled = new Sender();
  stalled.hasWindow = false;
  scheduler.wait(stalled);
  scheduler.run();
  assertEquals([stalled.turns, scheduler.waiting], [0, 0]);
});

Deno.test("small senders go first, but never shut bulk out", () => {
  let room = 60;
  const scheduler = new WriteScheduler(() => room-- > 0);
  const [small, bulk] = [new Sender(), new Sender()];
  small.isSparse = true;
  for (const [sender, bytes] of [[small, 1000], [bulk, 16_384]] as const) {
    sender.onTurn = () => {
      scheduler.sent(sender, bytes);
      scheduler.wait(sender);
    };
    scheduler.wait(sender);
  }
  scheduler.run();
  assertEquals(small.turns + bulk.turns, 60);
  assertEquals(bulk.turns, 3); // one after each 16 KiB of small frames
});

Deno.test("who is removed gets no turn, and a turn inside a turn is none", () => {
  const scheduler = new WriteScheduler(() => true);
  const [first, second] = [new Sender(), new Sender()];
  first.onTurn = () => {
    scheduler.remove(second);
    scheduler.run();
  };
  scheduler.wait(first);
  scheduler.wait(second);
  scheduler.run();
  assertEquals([first.turns, second.turns], [1, 0]);
});
