import { assert, assertEquals } from "@std/assert";
import { systemTimers } from "./system_timers.ts";

// The sanitizer of `deno test` is half of these tests: it fails them when a
// platform timer is left behind.

Deno.test("a short timer fires once", async () => {
  const fired = Promise.withResolvers<void>();
  systemTimers.after(1, fired.resolve);
  await fired.promise;
});

Deno.test("brief timers fire in their order, never early, and not if cancelled", async () => {
  const startMs = systemTimers.now();
  const fired: [delayMs: number, afterMs: number][] = [];
  const set = (delayMs: number) => {
    const over = Promise.withResolvers<void>();
    const timer = systemTimers.after(delayMs, () => {
      fired.push([delayMs, systemTimers.now() - startMs]);
      over.resolve();
    });
    return { timer, done: over.promise };
  };
  const all = [20, 2, 32, 7, 3].map(set);
  set(5).timer.cancel();
  await Promise.all(all.map(({ done }) => done));
  assertEquals(fired.map(([delayMs]) => delayMs), [2, 3, 7, 20, 32]);
  for (const [delayMs, afterMs] of fired) assert(afterMs >= delayMs);
});

Deno.test("cancelled brief timers leave nothing behind", () => {
  const timers = [2, 20, 31.5].map((delayMs) =>
    systemTimers.after(delayMs, () => {})
  );
  for (const timer of timers) timer.cancel();
});

Deno.test("a long timer fires, and never early", async () => {
  const startMs = systemTimers.now();
  await new Promise<void>((done) => systemTimers.after(1_000, done));
  assert(systemTimers.now() - startMs >= 1_000);
});

Deno.test("timers of one slot are cancelled one by one", async () => {
  const fired: string[] = [];
  const { promise, resolve } = Promise.withResolvers<void>();
  const first = systemTimers.after(1_000, () => fired.push("first"));
  systemTimers.after(1_000, () => fired.push("second"));
  systemTimers.after(1_100, resolve);
  first.cancel();
  first.cancel();
  await promise;
  assertEquals(fired, ["second"]);
});

Deno.test("a callback may cancel its neighbour of the same slot", async () => {
  const fired: string[] = [];
  const { promise, resolve } = Promise.withResolvers<void>();
  systemTimers.after(1_000, () => {
    fired.push("one");
    other.cancel();
  });
  const other = systemTimers.after(1_000, () => fired.push("other"));
  systemTimers.after(1_200, resolve);
  await promise;
  assertEquals(fired, ["one"]);
});

Deno.test("cancelled long timers leave nothing behind", () => {
  const timers = [1_000, 60_000, 2 ** 40].map((delayMs) =>
    systemTimers.after(delayMs, () => {})
  );
  for (const timer of timers) timer.cancel();
});

Deno.test("a timer that is due sooner than all others is not late", async () => {
  const later = systemTimers.after(60_000, () => {});
  const startMs = systemTimers.now();
  await new Promise<void>((done) => systemTimers.after(1_000, done));
  assert(systemTimers.now() - startMs < 30_000);
  later.cancel();
});

Deno.test("a timer set from a callback fires too, behind cancelled ones", async () => {
  systemTimers.after(1_200, () => {}).cancel();
  await new Promise<void>((done) => {
    systemTimers.after(1_000, () => {
      systemTimers.after(1_100, () => {}).cancel();
      systemTimers.after(1_000, done);
    });
  });
});

Deno.test("a process that was held up reads what has come before it calls anything late", async () => {
  using listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const { port } = listener.addr;
  const ask = async () => {
    using conn = await Deno.connect({ port });
    using peer = await listener.accept();
    const read = conn.read(new Uint8Array(1));
    await peer.write(new Uint8Array(1));
    const late = Promise.withResolvers<"late">();
    const timer = systemTimers.after(1_000, () => late.resolve("late"));
    const untilMs = systemTimers.now() + 1_200;
    while (systemTimers.now() < untilMs);
    const first = await Promise.race([read, late.promise]);
    timer.cancel();
    return first;
  };
  assertEquals(await ask(), 1);
});
