/**
 * Random histories of a client of discovery and its server.
 *
 * A history is a list of things that happen, made of a seed. One that fails is
 * made as short as it gets before it is shown.
 *
 * @module
 */

import { type Catalog, DiscoveryWorld } from "./discovery_world.ts";
import type { ModelCharacter } from "./discovery_model.ts";
import { Prng } from "../memory/prng.ts";
import { RESOURCE_KINDS } from "../../../proto/xds/resource.ts";

const SERVICES = ["a", "b", "c", "d", "e"];

interface Happening {
  readonly what: number;
  readonly pick: number;
  readonly seed: number;
}

function characterOf(prng: Prng): ModelCharacter {
  const flip = () => prng.below(2) === 0;
  return {
    mode: flip() ? "sotw" : "delta",
    kind: flip() ? "envoy" : "grpc",
    namesBad: flip(),
    appliesGood: flip(),
    keepsAnswer: flip(),
    isLed: flip(),
  };
}

function happeningsOf(prng: Prng): readonly Happening[] {
  return Array.from({ length: 5 + prng.below(60) }, () => ({
    what: prng.below(100),
    pick: prng.below(1_000_000),
    seed: prng.below(2 ** 31),
  }));
}

/** @throws {Error} When something does not hold. */
function run(
  character: ModelCharacter,
  happenings: readonly Happening[],
  onWorld: (world: DiscoveryWorld) => void = () => {},
): void {
  const world = new DiscoveryWorld(character);
  onWorld(world);
  const catalog: Catalog = {
    cluster: new Map(),
    endpoints: new Map(),
    listener: new Map(),
    route: new Map(),
    service: new Map(),
  };
  for (const happening of happenings) happen(world, catalog, happening);
  world.settle();
  world.check();
}

function happen(
  world: DiscoveryWorld,
  catalog: Catalog,
  { what, pick, seed }: Happening,
): void {
  const prng = new Prng(seed);
  if (what < 35) world.deliverUp();
  else if (what < 65) world.deliverDown();
  else if (what < 85) {
    for (let i = prng.below(3); i >= 0; i--) change(catalog, prng);
    world.publish(catalog, prng.below(4) === 0);
  } else if (what < 90) {
    if (world.model.character.kind === "envoy") return;
    const kind = RESOURCE_KINDS[pick % RESOURCE_KINDS.length]!;
    world.model.want(kind, someOf(SERVICES, prng));
  } else if (what < 97) {
    world.pass([0, 50, 900, 5_000, 11_000, 31_000][pick % 6]!);
  } else if (what < 99) world.reconnect();
  else {
    world.settle();
    world.check();
  }
}

/** A service comes, goes or is something else: all of it, as far as it matters. */
function change(catalog: Catalog, prng: Prng): void {
  const name = prng.pick(SERVICES);
  const version = () => `${prng.below(6)}${prng.below(8) === 0 ? "!" : ""}`;
  const isThere = catalog.cluster.has(name);
  if (isThere && prng.below(3) === 0) {
    for (const kind of RESOURCE_KINDS) catalog[kind].delete(name);
    return;
  }
  for (const kind of RESOURCE_KINDS) {
    if (!isThere || prng.below(3) === 0) catalog[kind].set(name, version());
  }
  if (prng.below(6) === 0) catalog.endpoints.delete(name);
}

function someOf(names: readonly string[], prng: Prng): Set<string> {
  return new Set(names.filter(() => prng.below(2) === 0));
}

function failureOf(
  character: ModelCharacter,
  happenings: readonly Happening[],
): string | undefined {
  try {
    run(character, happenings);
    return undefined;
  } catch (error) {
    return (error as Error).message;
  }
}

/** Leaves out whatever is not needed to fail. */
function shrink(
  character: ModelCharacter,
  happenings: readonly Happening[],
): readonly Happening[] {
  let short = happenings;
  for (let size = short.length >> 1; size > 0; size >>= 1) {
    for (let at = 0; at < short.length;) {
      const shorter = [...short.slice(0, at), ...short.slice(at + size)];
      if (failureOf(character, shorter) !== undefined) short = shorter;
      else at += size;
    }
  }
  return short;
}

function report(
  seed: number,
  character: ModelCharacter,
  happenings: readonly Happening[],
): string {
  const short = shrink(character, happenings);
  let log: readonly string[] = [];
  try {
    run(character, short, (world) => log = world.log);
  } catch (error) {
    return [
      `Failed; replay with SEED=${seed}: ${(error as Error).message}`,
      JSON.stringify(character),
      ...log,
    ].join("\n");
  }
  return `SEED=${seed} fails now and then`;
}

/**
 * Runs histories, and fails with the shortest that breaks something.
 *
 * @param first Seed of the first; `SEED` in the environment is used instead.
 */
export function checkHistories(first: number, runs: number): void {
  const start = +(Deno.env.get("SEED") ?? first);
  for (let seed = start; seed < start + runs; seed++) {
    const prng = new Prng(seed);
    const character = characterOf(prng);
    const happenings = happeningsOf(prng);
    if (failureOf(character, happenings) === undefined) continue;
    throw new Error(report(seed, character, happenings));
  }
}
