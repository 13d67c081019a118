import { assertEquals, assertRejects } from "@std/assert";
import { settled } from "../../tests/support/memory/conduit_probe.ts";
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

Deno.test("each address has a head start, and the first that connects is taken", async () => {
  const world = new World(["a", "b", "c"]);
  world.timers.advance(ATTEMPT_DELAY_MS - 1);
  assertEquals(world.tried, ["a"]);
  world.timers.advance(1);
  assertEquals(world.tried, ["a", "b"]);
  // One more in each delay, not one for each that is silent.
  await world.fail("b", "refused");
  world.timers.advance(ATTEMPT_DELAY_MS - 1);
  assertEquals(world.tried, ["a", "b", "c"]);
  world.succeed("c");
  assertEquals(await world.result, "c");
  assertEquals(world.aborted("a"), true);
  world.succeed("a");
  await settled();
  assertEquals(world.discarded, ["a"]);
});

Deno.test("when all fail, the first address's error is reported", async () => {
  const world = new World(["a", "b", "c"]);
  world.timers.advance(2 * ATTEMPT_DELAY_MS);
  await world.fail("c", "third");
  await world.fail("b", "second");
  await world.fail("a", "first");
  await assertRejects(() => world.result, Error, "first");
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
    await settled();
  }
}
