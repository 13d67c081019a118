import { assertEquals, assertRejects } from "@std/assert";
import { FakeTimers } from "../../tests/support/memory/fake_timers.ts";
import {
  ATTEMPT_DELAY_MS,
  connectAny,
  interleaveFamilies,
} from "./happy_eyeballs.ts";

Deno.test("families take turns, the preferred one first", () => {
  assertEquals(
    interleaveFamilies(["2001:db8::1", "2001:db8::2", "10.0.0.1", "10.0.0.2"]),
    ["2001:db8::1", "10.0.0.1", "2001:db8::2", "10.0.0.2"],
  );
  assertEquals(interleaveFamilies(["10.0.0.1", "::1", "10.0.0.2"]), [
    "10.0.0.1",
    "::1",
    "10.0.0.2",
  ]);
});

Deno.test("the second address is tried after the head start", async () => {
  const world = new World(["a", "b"]);
  assertEquals(world.tried, ["a"]);
  world.timers.advance(ATTEMPT_DELAY_MS - 1);
  assertEquals(world.tried, ["a"]);
  world.timers.advance(1);
  assertEquals(world.tried, ["a", "b"]);
  world.succeed("b");
  assertEquals(await world.result, "b");
  assertEquals(world.aborted("a"), true);
});

Deno.test("a failure starts the next attempt at once", async () => {
  const world = new World(["a", "b"]);
  await world.fail("a", "refused");
  assertEquals(world.tried, ["a", "b"]);
  world.succeed("b");
  assertEquals(await world.result, "b");
});

Deno.test("when all fail, the first address's error is reported", async () => {
  const world = new World(["a", "b", "c"]);
  world.timers.advance(ATTEMPT_DELAY_MS);
  world.timers.advance(ATTEMPT_DELAY_MS);
  await world.fail("c", "third");
  await world.fail("b", "second");
  await world.fail("a", "first");
  await assertRejects(() => world.result, Error, "first");
});

Deno.test("a connection that comes too late is freed", async () => {
  const world = new World(["a", "b"]);
  world.timers.advance(ATTEMPT_DELAY_MS);
  world.succeed("b");
  await world.result;
  world.succeed("a");
  await Promise.resolve();
  assertEquals(world.discarded, ["a"]);
});

Deno.test("giving up ends every attempt", async () => {
  const world = new World(["a", "b"]);
  world.timers.advance(ATTEMPT_DELAY_MS);
  world.controller.abort(new Error("deadline"));
  await assertRejects(() => world.result, Error, "deadline");
  assertEquals([world.aborted("a"), world.aborted("b")], [true, true]);
  world.timers.advance(ATTEMPT_DELAY_MS);
  assertEquals(world.tried.length, 2);
});

/** Addresses whose attempts end when the test says so. */
class World {
  readonly timers = new FakeTimers();
  readonly controller = new AbortController();
  readonly discarded: string[] = [];
  readonly result: Promise<string>;
  readonly #attempts = new Map<
    string,
    PromiseWithResolvers<string> & { signal: AbortSignal }
  >();

  constructor(addresses: readonly string[]) {
    this.result = connectAny<string>({
      addresses,
      signal: this.controller.signal,
      timers: this.timers,
      connect: (address, signal) => {
        const attempt = { ...Promise.withResolvers<string>(), signal };
        this.#attempts.set(address, attempt);
        return attempt.promise;
      },
      discard: (connection) => this.discarded.push(connection),
    });
    this.result.catch(() => {});
  }

  get tried(): string[] {
    return [...this.#attempts.keys()];
  }

  aborted(address: string): boolean {
    return this.#attempts.get(address)!.signal.aborted;
  }

  succeed(address: string): void {
    this.#attempts.get(address)!.resolve(address);
  }

  async fail(address: string, message: string): Promise<void> {
    this.#attempts.get(address)!.reject(new Error(message));
    await Promise.resolve();
    await Promise.resolve();
  }
}
