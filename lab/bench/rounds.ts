/**
 * The order of the runs. Every run of a peer has a run of A right before or
 * right after it, and only these two are compared.
 *
 * @module
 */

import type { Outcome, Pair } from "./comparison.ts";
import type { Contender } from "./contender.ts";
import { SpoiledRunError } from "./generator.ts";
import { type Metric, type Scale, supports } from "./metric.ts";

/** Everything that was measured for one metric. */
export interface Measured {
  /** Of A, in order. */
  readonly alone: Outcome[];
  /** By the place of the peer in the plan: `a` may be measured beside itself. */
  readonly pairs: Map<number, Pair[]>;
}

/**
 * Who runs in one round: A P, or P1 A P2 so that one run of A serves two
 * peers. Every other round the other way round, or A would always be measured
 * in the wake of the same peer.
 *
 * @param peers Places of the peers.
 * @param round Counted from 0.
 */
export function sequence(
  peers: readonly number[],
  round: number,
): (number | "A")[][] {
  if (peers.length === 0) return [["A"]];
  const groups: (number | "A")[][] = [];
  for (let from = 0; from < peers.length; from += 2) {
    const [first, second] = peers.slice(from, from + 2);
    groups.push(
      second === undefined ? ["A", first!] : [first!, "A", second],
    );
  }
  if (round % 2 === 0) return groups;
  // With one peer A B A B stays A B A B.
  return groups.map((group) => group.length === 3 ? group.toReversed() : group);
}

/** Measures one metric once with everybody who can be measured with it. */
export async function measureRound(
  metric: Metric,
  scale: Scale,
  a: Contender,
  peers: readonly Contender[],
  round: number,
  measured: Measured,
): Promise<void> {
  const places = peers.keys().toArray()
    .filter((place) => supports(metric, peers[place]!.name));
  for (const group of sequence(places, round)) {
    const outcomes = new Map<number | "A", Outcome>();
    for (const who of group) {
      const contender = who === "A" ? a : peers[who]!;
      outcomes.set(who, await measureOnce(metric, scale, contender));
    }
    const ours = outcomes.get("A")!;
    measured.alone.push(ours);
    for (const who of group) {
      if (who === "A") continue;
      const pairs = measured.pairs.get(who) ?? [];
      pairs.push({ ours, theirs: outcomes.get(who)! });
      measured.pairs.set(who, pairs);
    }
  }
}

async function measureOnce(
  metric: Metric,
  scale: Scale,
  contender: Contender,
): Promise<Outcome> {
  try {
    return await contender.measure(metric, scale);
  } catch (error) {
    if (!(error instanceof SpoiledRunError)) throw error;
    // Whatever broke may be broken for the next run too: begin afresh.
    await contender.stop();
    return { spoiled: `${contender.name}: ${error.message}` };
  }
}
