import { assert, assertEquals } from "@std/assert";
import type { Timer, Timers } from "../../proto/sync/clock.ts";
import {
  KnownAgents,
  type KnownPeer,
  PeerIndex,
  WorkTurns,
} from "./known_agents.ts";

const PEER: KnownPeer = {
  serverId: "b",
  address: "b:1",
  agentsAreKnown: true,
};

/** A clock that runs while work is done, and turns that the test gives. */
class SlowTimers implements Timers {
  #nowMs = 0;
  readonly turns: (() => void)[] = [];

  now(): number {
    return this.#nowMs += 1;
  }

  after(_delayMs: number, act: () => void): Timer {
    this.turns.push(act);
    return { cancel: () => void this.turns.splice(this.turns.indexOf(act), 1) };
  }
}

function list(from: number, to: number): string {
  const agents = [];
  for (let at = from; at < to; at++) agents.push([`a${at}`, `host=a${at}`]);
  return JSON.stringify({ isWhole: true, agents });
}

function setUp() {
  const timers = new SlowTimers();
  const index = new PeerIndex(["destHost"]);
  const agents = new KnownAgents(PEER, index, new WorkTurns(timers));
  const has = (name: string) =>
    index.find({ protocol: "tcp", address: `${name}:1` }, undefined).length > 0;
  const finish = () => {
    let turns = 0;
    while (timers.turns.length > 0) {
      timers.turns.shift()!();
      turns++;
    }
    return turns;
  };
  return { agents, has, finish };
}

Deno.test("a long list is read in turns, and until then it may have any agent", () => {
  const { agents, has, finish } = setUp();
  agents.set("agents-00", list(0, 2_000));
  assert(!has("a1999"));
  assertEquals(PEER.agentsAreKnown, false);
  assert(finish() > 5);
  assert(has("a0") && has("a1999"));
  assertEquals(PEER.agentsAreKnown, true);
});

Deno.test("what is read late is what was written last", () => {
  const { agents, has, finish } = setUp();
  agents.set("agents-00", list(0, 1_000));
  agents.set("agents-01", list(1_000, 1_100));
  agents.set("agents-01", list(1_050, 1_150));
  finish();
  assert(!has("a1000") && has("a1050") && has("a1149"));
  agents.set("agents-01", undefined);
  agents.set("agents-00", list(1, 1_000));
  finish();
  assert(!has("a1050") && !has("a0") && has("a1"));
});

Deno.test("a server that goes while its agents are read leaves none", () => {
  const { agents, has, finish } = setUp();
  agents.set("agents-00", list(0, 1_000));
  agents.set("agents-01", list(1_000, 2_000));
  agents.drop();
  finish();
  for (const name of ["a0", "a999", "a1000", "a1999"]) assert(!has(name), name);
});
