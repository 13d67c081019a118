import { assert } from "@std/assert";

const HERE = new URL(".", import.meta.url).href;

/** Makes garbage, and prints what is resident before and after the relief. */
const BURST = `
const { MemoryRelief, MEMORY_LOOK_INTERVAL_MS } = await import("${HERE}memory_relief.ts");
const { FakeTimers } = await import("${HERE}../../tests/support/memory/fake_timers.ts");
let burst = Array.from({ length: 400_000 }, (_, index) => ({ index, bytes: [index] }));
const before = Deno.memoryUsage().rss + 0 * burst.length;
burst = undefined;
const timers = new FakeTimers();
const relief = new MemoryRelief(timers);
const isLower = () => Deno.memoryUsage().rss < before - 16 * 1024 * 1024;
// V8's other threads may be busy in the first ones, and a busy process waits.
for (let look = 0; look < 60 && !isLower(); look++) {
  timers.advance(MEMORY_LOOK_INTERVAL_MS);
}
relief.stop();
console.log(JSON.stringify([before, Deno.memoryUsage().rss]));
`;

/** Prints what is resident, and of it our own, before and after; and what went. */
const PAGES = `
const { ownBytes, releaseProgramPages } = await import("${HERE}program_pages.ts");
const resident = () => [Deno.memoryUsage().rss, ownBytes()];
console.log(JSON.stringify([...resident(), releaseProgramPages(), ...resident()]));
`;

/** @returns The numbers that a process of its own prints: no other test is in it. */
async function numbersOf(module: string): Promise<number[]> {
  const folder = await Deno.makeTempDir();
  await Deno.writeTextFile(`${folder}/measure.ts`, module);
  const { stdout } = await new Deno.Command(Deno.execPath(), {
    args: ["run", "--quiet", "--no-config", "-A", "--v8-flags=--expose-gc"]
      .concat(`${folder}/measure.ts`),
  }).output();
  await Deno.remove(folder, { recursive: true });
  return JSON.parse(new TextDecoder().decode(stdout));
}

Deno.test("a process with its collector at hand gives garbage back", async () => {
  const [before, after] = await numbersOf(BURST) as [number, number];
  // 400,000 objects with an array each are more than 20 MiB.
  assert(before - after > 16 * 1024 * 1024, `${before} became ${after}`);
});

Deno.test("pages of the program's file go, and what they hold stays usable", async () => {
  const [before, own, released, after, ownAfter] = await numbersOf(PAGES) as [
    ...[number, number, number, number, number],
  ];
  assert(own > 0 && own < before, `${own} of ${before} bytes`);
  // What ran since has come back.
  assert(released > 16 * 1024 * 1024, `${released} bytes`);
  assert(before - after > released / 4, `${before} became ${after}`);
  assert(ownAfter < own + 8 * 1024 * 1024, "they are counted as files'");
});
