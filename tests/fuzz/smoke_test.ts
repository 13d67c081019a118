/**
 * A short, always equal run of every fuzz target, with all stored inputs; the
 * long runs are `deno task fuzz`.
 *
 * @module
 */

import { joinedBytes } from "../../proto/bytes/byte_arrays.ts";
import { assert, assertEquals } from "@std/assert";
import { formatHex, parseHex, readCorpus } from "./corpus.ts";
import { cut, prngOf } from "./cutting.ts";
import { mutate } from "./mutators.ts";
import { Prng } from "../support/memory/prng.ts";
import { CANARY, CANARY_RUNS_MAX, TARGETS } from "./registry.ts";
import { type Crash, fuzz } from "./runner.ts";

/** Fixed: a failure here must not come and go. */
const SEED = 1;
const RUNS = 200;

for (const target of TARGETS) {
  Deno.test(`${target.name} withstands its corpus and some mutations`, async () => {
    const stored = await readCorpus(target.name);
    assert(stored.length > 0, "No stored input was found");
    for (const { name, input } of stored) {
      try {
        target.run(input);
      } catch (cause) {
        throw new Error(`Broken by the stored input ${name}`, { cause });
      }
    }
    const report = fuzz(target, {
      seed: SEED,
      stored: stored.map(({ input }) => input),
      isOver: (runs) => runs >= RUNS,
    });
    assertNoCrash(report.crash);
    assert(report.outcomes > 5, "The mutations lead nowhere");
  });

  Deno.test(`${target.name} cuts its seeds into records that are whole again`, () => {
    for (const seed of target.seeds) {
      assertEquals(joinedBytes(target.split(seed)), seed);
    }
  });
}

function assertNoCrash(crash: Crash | undefined): void {
  if (crash === undefined) return;
  const { input, error, seed } = crash;
  throw new Error(
    `Broken; replay with --seed ${seed}; input ${input.toHex()}`,
    { cause: error },
  );
}

Deno.test("the canary is found, whatever the seed, and made small", () => {
  for (let seed = 0; seed < 20; seed++) {
    const report = fuzz(CANARY, {
      seed,
      isOver: (runs) => runs >= CANARY_RUNS_MAX,
    });
    assert(report.crash !== undefined, `Not found with seed ${seed}`);
    // One record of two bytes: a type and a length that lies.
    assertEquals(report.crash.input.length, 2);
  }
});

Deno.test("equal seeds give equal runs", () => {
  const run = () => fuzz(CANARY, { seed: 7, isOver: (runs) => runs >= 1000 });
  const [first, second] = [run(), run()];
  assertEquals(first.runs, second.runs);
  assertEquals(first.crash?.input, second.crash?.input);
});

Deno.test("the seed of a crash breaks the target in the first run", () => {
  for (let seed = 0; seed < 20; seed++) {
    const { crash } = fuzz(CANARY, { seed, isOver: (runs) => runs >= 5000 });
    if (crash?.seed === undefined) continue;
    const again = fuzz(CANARY, {
      seed: crash.seed,
      isOver: (runs) => runs >= 1,
    });
    assertEquals(again.crash?.input, crash.input);
  }
});

Deno.test("a stored crash is found before anything else", () => {
  const stored = [Uint8Array.of(3, 9)];
  const report = fuzz(CANARY, { seed: 0, stored, isOver: () => true });
  assertEquals(report.runs, 0);
  assertEquals(report.crash?.input, stored[0]);
});

Deno.test("corpus files survive, remarks and all", () => {
  const input = Uint8Array.from({ length: 100 }, (_, index) => index);
  assertEquals(parseHex(formatHex(input, "two\nlines")), input);
});

Deno.test("cutting keeps all bytes, the same way for the same input", () => {
  const input = Uint8Array.from({ length: 500 }, (_, index) => index);
  const chunks = cut(input, prngOf(input));
  assertEquals(joinedBytes(chunks), input);
  assertEquals(cut(input, prngOf(input)), chunks);
});

Deno.test("mutations change the copy and never the pool", () => {
  const pool = [Uint8Array.of(1, 2, 7, 7), Uint8Array.of(3, 1, 9)];
  const before = pool.map((input) => input.slice());
  for (let seed = 0; seed < 500; seed++) mutate(CANARY, pool, new Prng(seed));
  assertEquals(pool, before);
});
