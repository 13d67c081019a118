import { assert, assertEquals } from "@std/assert";
import { Prng } from "../../tests/support/memory/prng.ts";
import { chooseLink, type LinkSight, OPEN_MS } from "./link_choice.ts";

interface TestLink extends LinkSight {
  readonly name: string;
}

/** A calm and empty link, but for what is given. */
function link(name: string, given: Partial<LinkSight> = {}): TestLink {
  return {
    name,
    bulkConduits: 0,
    roundTripMs: undefined,
    load: 0,
    dialedMs: -Infinity,
    ...given,
  };
}

/** What an agent's links go through as dials come; see `dial`. */
class Agent {
  nowMs = 0;
  readonly links: {
    name: string;
    bulkConduits: number;
    roundTripMs: number | undefined;
    load: number;
    dialedMs: number;
  }[];

  constructor(links: number) {
    this.links = Array.from(
      { length: links },
      (_, index) => link("ABCDEFGH"[index]!),
    );
  }

  /** Dials once. @returns Which link has it. */
  dial(): string {
    const chosen = chooseLink(this.links, this.nowMs) as Agent["links"][0];
    chosen.load++;
    chosen.dialedMs = this.nowMs;
    return chosen.name;
  }

  /** What was dialed on these turns out to be bulk, once that is known. */
  bulk(...names: string[]): void {
    this.nowMs += OPEN_MS;
    for (const name of names) {
      this.links.find((link) => link.name === name)!.bulkConduits++;
    }
  }
}

Deno.test("with two links a burst of downloads shares one, what comes later has the other", () => {
  const agent = new Agent(2);
  assertEquals([1, 2, 3, 4].map(() => agent.dial()), ["A", "A", "A", "A"]);
  agent.bulk("A", "A", "A", "A");
  assertEquals([1, 2, 3].map(() => agent.dial()), ["B", "B", "B"]);
});

Deno.test("what came before keeps its link for itself when downloads begin", () => {
  const agent = new Agent(2);
  assertEquals(agent.dial(), "A");
  agent.nowMs += OPEN_MS;
  assertEquals([1, 2, 3, 4].map(() => agent.dial()), ["B", "B", "B", "B"]);
});

Deno.test("with four links a burst is spread over three, and one is kept", () => {
  const agent = new Agent(4);
  const burst = Array.from({ length: 16 }, () => agent.dial());
  assertEquals(burst.filter((name) => name === "D"), []);
  for (const name of ["A", "B", "C"]) {
    assert(burst.filter((other) => other === name).length >= 5);
  }
  agent.bulk("A", "B", "C");
  assertEquals(agent.dial(), "D");
});

Deno.test("when bulk is everywhere, the link with least of it is chosen", () => {
  const links = [
    link("A", { bulkConduits: 2 }),
    link("B", { bulkConduits: 1, load: 9 }),
    link("C", { bulkConduits: 1, load: 3 }),
  ];
  assertEquals(chooseLink(links, 0).name, "C");
});

Deno.test("a busy link with much longer round trips is left alone", () => {
  const slow = link("A", { bulkConduits: 1, roundTripMs: 300 });
  const fast = link("B", { bulkConduits: 5, roundTripMs: 100 });
  assertEquals(chooseLink([slow, fast], 0).name, "B");
  assertEquals(chooseLink([fast, slow], 0).name, "B");
  const similar = link("C", { bulkConduits: 1, roundTripMs: 140 });
  assertEquals(chooseLink([fast, similar], 0).name, "C");
});

Deno.test("nobody is put beside bulk while a link without it is there", () => {
  for (let seed = 1; seed <= 300; seed++) {
    const prng = new Prng(seed);
    const links = Array.from(
      { length: 1 + prng.below(5) },
      (_, index) =>
        link(`${index}`, {
          bulkConduits: prng.below(3),
          roundTripMs: prng.below(2) === 0 ? undefined : prng.below(500),
          load: prng.below(20),
          dialedMs: prng.below(3 * OPEN_MS),
        }),
    );
    const chosen = chooseLink(links, 3 * OPEN_MS);
    assert(links.includes(chosen));
    if (links.some(({ bulkConduits }) => bulkConduits === 0)) {
      assertEquals(chosen.bulkConduits, 0, `seed ${seed}`);
    }
    const isUsed = ({ bulkConduits, dialedMs }: LinkSight) =>
      bulkConduits > 0 || 3 * OPEN_MS - dialedMs < OPEN_MS;
    // The last calm link is only taken when there is no other choice.
    if (links.filter((link) => !isUsed(link)).length === 1) {
      const others = links.filter(isUsed);
      if (others.some(({ bulkConduits }) => bulkConduits === 0)) {
        assert(isUsed(chosen), `seed ${seed}`);
      }
    }
  }
});
