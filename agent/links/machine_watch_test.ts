import { assertEquals } from "@std/assert";
import { FakeTimers } from "../../tests/support/memory/fake_timers.ts";
import { CHANGES, MACHINE_GATHER_MS, MachineWatch } from "./machine_watch.ts";

/** A machine whose network and clocks a test has in its hands. */
class Machine implements Disposable {
  readonly timers = new FakeTimers();
  readonly told: string[] = [];
  wallMs = 1_000_000;
  change: () => void = () => {};
  isHeard = true;
  readonly watch = new MachineWatch({
    timers: this.timers,
    wallClock: () => this.wallMs,
    changed: (why) => this.told.push(why),
    listen: (onChange) => {
      this.change = onChange;
      return { close: () => void (this.isHeard = false) };
    },
  });

  /** Both clocks go on, in steps as a process that runs has them. */
  run(ms: number): void {
    for (let left = ms; left > 0; left -= 100) {
      this.wallMs += 100;
      this.timers.advance(100);
    }
  }

  [Symbol.dispose](): void {
    this.watch.stop();
    assertEquals([this.timers.pendingCount, this.isHeard], [0, false]);
  }
}

Deno.test("changes of the network are gathered, and many count only so often", () => {
  using machine = new Machine();
  for (let count = 0; count < 5; count++) machine.change();
  machine.run(MACHINE_GATHER_MS);
  assertEquals(machine.told, ["the network has changed"]);
  for (let count = 0; count < 1_000; count++) {
    machine.change();
    machine.run(MACHINE_GATHER_MS);
  }
  const most = CHANGES.burst +
    1_000 * MACHINE_GATHER_MS / 1_000 * CHANGES.perSecond;
  assertEquals(machine.told.length <= most + 1, true, `${machine.told.length}`);
});

Deno.test("a machine that slept is noticed by its wall clock", () => {
  using machine = new Machine();
  machine.run(5_000);
  assertEquals(machine.told, []);
  machine.wallMs += 3_600_000;
  machine.run(500);
  assertEquals(machine.told.length, 1);
  // People may set it back: nothing has happened to links.
  machine.wallMs -= 3_600_000;
  machine.run(5_000);
  assertEquals(machine.told.length, 1);
});
