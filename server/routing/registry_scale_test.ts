import { assert, assertEquals } from "@std/assert";
import { FakeLink } from "../../tests/support/memory/fake_link.ts";
import { Prng } from "../../tests/support/memory/prng.ts";
import type { StrategyName } from "../options.ts";
import { AGENTS_LOOKED_AT_MAX } from "../strategies/agent_list.ts";
import { Registry } from "./registry.ts";

// What something costs is counted, in looks at links: time would depend on the
// machine. Ten thousand agents may cost what ten do.

const MANY = 10_000;

/** Two of the less loaded, a few looked at again, and their ranks. */
const LOOKS_MAX = 20;

/** A link that counts who looks at it. */
class WatchedLink extends FakeLink {
  static looks = 0;
  isGone = false;

  constructor(at: number) {
    super(`a${at}`, {
      host: [`n${at}`],
      ipv4: [`10.${at >> 8}.${at & 255}.1`],
      cidr: [`10.${at >> 8}.${at & 255}.0/24`],
    });
    Object.defineProperty(this, "isDraining", {
      get: () => (WatchedLink.looks++, this.isGone),
    });
    Object.defineProperty(this, "lastHeardMs", {
      get: () => (WatchedLink.looks++, 0),
    });
    Object.defineProperty(this, "load", {
      get: () => (WatchedLink.looks++, 0),
    });
  }
}

function crowd(
  strategies: readonly StrategyName[] = ["default"],
  count = MANY,
) {
  const prng = new Prng(7);
  const registry = new Registry({
    strategies,
    clock: { now: () => 0 },
    random: () => prng.below(1 << 20) / (1 << 20),
  });
  const links = Array.from({ length: count }, (_, at) => new WatchedLink(at));
  for (const link of links) registry.add(link);
  const pick = (address = "x:1", node?: string) => {
    const picked = registry.pick({ protocol: "tcp", address }, node);
    return picked.kind === "picked" ? picked.link as WatchedLink : undefined;
  };
  return { registry, links, pick };
}

/** How often links were looked at meanwhile. */
function looksOf(act: () => void): number {
  const before = WatchedLink.looks;
  act();
  return WatchedLink.looks - before;
}

Deno.test("a dial looks at as many links with 10,000 agents as with 10", () => {
  const few = crowd(["default"], 10);
  const many = crowd();
  for (let dial = 0; dial < 100; dial++) {
    assertEquals(looksOf(() => many.pick()), looksOf(() => few.pick()));
  }
  assert(looksOf(() => many.pick()) <= LOOKS_MAX);
  const routed = crowd(["destHost", "cidr", "default"]);
  assert(looksOf(() => routed.pick("n77:1")) <= LOOKS_MAX);
  assert(looksOf(() => routed.pick("10.1.2.3:1")) <= LOOKS_MAX);
  assert(looksOf(() => routed.pick("x:1", "n77")) <= LOOKS_MAX);
  assert(looksOf(() => routed.pick("x:1", "nobody")) <= LOOKS_MAX);
});

Deno.test("questions about counts look at no link", () => {
  const { registry } = crowd(["destHost", "default"]);
  const looks = looksOf(() => {
    assertEquals(registry.isReady, true);
    assertEquals(registry.agents, MANY);
    assertEquals(registry.agentCounts().map(({ agents }) => agents), [
      MANY,
      MANY,
    ]);
    assertEquals(registry.linksOver("streams"), MANY);
    assertEquals([...registry.loadedLinks()], []);
    assertEquals(registry.about("n77").length, MANY); // all are anonymous
  });
  assertEquals(looks, 0);
});

Deno.test("a link that comes or goes looks at no other agent's", () => {
  const { registry, links } = crowd(["destHost", "cidr", "default"]);
  for (const link of links.slice(0, 1_000)) {
    assert(looksOf(() => registry.remove(link)) <= 4);
  }
  for (const link of links.slice(0, 1_000)) {
    assert(looksOf(() => registry.add(link)) <= 4);
  }
  assertEquals(registry.agents, MANY);
});

Deno.test("when most agents drain the few others are found, and soon at no cost", () => {
  const { links, pick } = crowd();
  for (const link of links.slice(3)) link.isGone = true;
  const stay = new Set(links.slice(0, 3));
  const looks = looksOf(() => {
    for (let dial = 0; dial < 1_000; dial++) assert(stay.has(pick()!));
  });
  // Each of those that drain is met once.
  assert(looks < 3 * MANY + 1_000 * LOOKS_MAX, `${looks}`);
  assert(looksOf(pick) <= LOOKS_MAX);
  for (const link of links) link.isGone = false;
  for (let dial = 0; dial < MANY; dial++) pick();
  const drawn = new Set(Array.from({ length: 1_000 }, () => pick()));
  assert(drawn.size > 900, `only ${drawn.size} of 1,000 draws differ`);
});

Deno.test("when all agents drain a dial looks at some of them", () => {
  const { links, pick } = crowd();
  for (const link of links) link.isGone = true;
  pick();
  for (let dial = 0; dial < 10; dial++) {
    assert(looksOf(() => assert(pick())) <= 12 * AGENTS_LOOKED_AT_MAX);
  }
});

Deno.test("another one that was not tried is found at once among 10,000", () => {
  const { registry, pick } = crowd();
  const tried = new Set([pick()!, pick()!, pick()!]);
  const target = { protocol: "tcp", address: "x:1" } as const;
  let other: unknown;
  const looks = looksOf(() => {
    other = registry.pickSuch(
      target,
      undefined,
      (link) => !tried.has(link as WatchedLink),
    );
  });
  assert(other !== undefined && !tried.has(other as WatchedLink));
  assert(looks <= LOOKS_MAX);
  assertEquals(registry.pickSuch(target, undefined, () => false), undefined);
});
