import { assert, assertEquals } from "@std/assert";
import { FakeLink } from "../../tests/support/memory/fake_link.ts";
import { Prng } from "../../tests/support/memory/prng.ts";
import { LinkGroup, OPEN_MS, Rank } from "./link_choice.ts";

/** What a test says of a link; it is calm and empty otherwise. */
type Given = Partial<
  Pick<FakeLink, "bulkConduits" | "roundTripMs" | "load" | "ending">
>;

/** An agent whose links are named A, B … */
class Agent {
  nowMs = 0;
  readonly links: FakeLink[] = [];
  readonly #group = new LinkGroup(new FakeLink("agent").peer);

  constructor(...links: readonly Given[]) {
    for (const given of links) {
      const name = "ABCDEFGH"[this.links.length]!;
      const link = Object.assign(new FakeLink(name), given);
      this.links.push(link);
      this.#group.add(link);
    }
  }

  /** The link for a new conduit, of `among`. */
  pick(among: readonly FakeLink[] = this.links): FakeLink {
    const isAmong = (link: unknown) => among.some((one) => one === link);
    const rankOf = (link: unknown) =>
      isAmong(link) ? Rank.healthy : Rank.draining;
    return this.#group.pick(rankOf, this.nowMs) as FakeLink;
  }

  /** Dials once. @returns Which link has it. */
  dial(): string {
    const chosen = this.pick();
    chosen.load++;
    return chosen.peer.agentId;
  }

  /** What was dialed on these turns out to be bulk, once that is known. */
  bulk(...names: string[]): void {
    this.nowMs += OPEN_MS;
    for (const name of names) {
      this.links.find(({ peer }) => peer.agentId === name)!.bulkConduits++;
    }
  }
}

Deno.test("with two links a burst of downloads shares one, what comes later has the other", () => {
  const agent = new Agent({}, {});
  assertEquals([1, 2, 3, 4].map(() => agent.dial()), ["A", "A", "A", "A"]);
  agent.bulk("A", "A", "A", "A");
  assertEquals([1, 2, 3].map(() => agent.dial()), ["B", "B", "B"]);
});

Deno.test("what came before keeps its link for itself when downloads begin", () => {
  const agent = new Agent({}, {});
  assertEquals(agent.dial(), "A");
  agent.nowMs += OPEN_MS;
  assertEquals([1, 2, 3, 4].map(() => agent.dial()), ["B", "B", "B", "B"]);
});

Deno.test("with four links a burst is spread over three, and one is kept", () => {
  const agent = new Agent({}, {}, {}, {});
  const burst = Array.from({ length: 16 }, () => agent.dial());
  assertEquals(burst.filter((name) => name === "D"), []);
  for (const name of ["A", "B", "C"]) {
    assert(burst.filter((other) => other === name).length >= 5);
  }
  agent.bulk("A", "B", "C");
  assertEquals(agent.dial(), "D");
});

Deno.test("when bulk is everywhere, the link with least of it is chosen", () => {
  const agent = new Agent(
    { bulkConduits: 2 },
    { bulkConduits: 1, load: 9 },
    { bulkConduits: 1, load: 3 },
  );
  assertEquals(agent.dial(), "C");
});

Deno.test("a busy link with much longer round trips is left alone", () => {
  const slow = { bulkConduits: 1, roundTripMs: 300 };
  const fast = { bulkConduits: 5, roundTripMs: 100 };
  assertEquals(new Agent(slow, fast).dial(), "B");
  assertEquals(new Agent(fast, slow).dial(), "A");
  const similar = { bulkConduits: 1, roundTripMs: 140 };
  assertEquals(new Agent(fast, similar).dial(), "B");
});

Deno.test("no conduit is put beside bulk while a link without it is there", () => {
  for (let seed = 1; seed <= 300; seed++) {
    const prng = new Prng(seed);
    const agent = new Agent(
      ...Array.from({ length: 1 + prng.below(5) }, () => ({
        bulkConduits: prng.below(3),
        roundTripMs: prng.below(2) === 0 ? undefined : prng.below(500),
        load: prng.below(20),
      })),
    );
    const dialedMs = new Map<FakeLink, number>();
    for (const link of agent.links) {
      agent.nowMs = prng.below(3 * OPEN_MS);
      dialedMs.set(agent.pick([link]), agent.nowMs);
    }
    const isUsed = (link: FakeLink) =>
      link.bulkConduits > 0 || 3 * OPEN_MS - dialedMs.get(link)! < OPEN_MS;
    agent.nowMs = 3 * OPEN_MS;
    const chosen = agent.pick();
    if (agent.links.some(({ bulkConduits }) => bulkConduits === 0)) {
      assertEquals(chosen.bulkConduits, 0, `seed ${seed}`);
    }
    // The last calm link is only taken when there is no other choice.
    if (agent.links.filter((link) => !isUsed(link)).length === 1) {
      const others = agent.links.filter(isUsed);
      if (others.some(({ bulkConduits }) => bulkConduits === 0)) {
        assert(isUsed(chosen), `seed ${seed}`);
      }
    }
  }
});

Deno.test("what only waits for a goodbye sends no dial elsewhere", () => {
  const agent = new Agent({ load: 1, ending: 1 }, { load: 1 });
  assertEquals(agent.dial(), "A");
  const even = new Agent({ load: 1, ending: 1 }, {});
  assertEquals(even.dial(), "A", "of equals the first");
});
