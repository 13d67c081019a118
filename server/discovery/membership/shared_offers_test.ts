import { rememberedAgent as agent } from "../../../tests/support/memory/remembered_agent.ts";
import { assertEquals, assertMatch } from "@std/assert";
import { RecordedLog } from "../../../tests/support/watch/recorded_log.ts";
import type {
  EphemeralEvents,
  Ephemerals,
  PartChange,
} from "../../../neighbours/store/ephemerals.ts";
import { SHARD_LENGTH_MAX, SharedOffers } from "./shared_offers.ts";
import type { RememberedAgent } from "./member_memory.ts";

/** Where servers meet, in memory. */
class Meeting {
  readonly #events = new Map<string, EphemeralEvents>();
  readonly parts = new Map<string, Map<string, string>>();
  writes = 0;

  ephemerals(instanceId: string): Ephemerals {
    const own = new Map<string, string>();
    this.parts.set(instanceId, own);
    return {
      watch: (events) => {
        this.#events.set(instanceId, events);
        for (const [id, parts] of this.parts) {
          for (const [part, text] of parts) {
            events.changed([{ instanceId: id, part, text }]);
          }
        }
        events.following();
      },
      put: (part, text) => {
        this.writes++;
        own.set(part, text!);
        this.tell({ instanceId, part, text });
      },
      close: () => {
        this.end(instanceId);
        return Promise.resolve();
      },
    };
  }

  tell(...changes: readonly PartChange[]): void {
    for (const events of this.#events.values()) events.changed(changes);
  }

  /** All of it is gone at one moment, the part about itself last. */
  end(instanceId: string): void {
    const parts = [...this.parts.get(instanceId)!.keys()].reverse();
    this.parts.get(instanceId)!.clear();
    this.#events.delete(instanceId);
    this.tell(...parts.map((part) => ({ instanceId, part, text: undefined })));
  }
}

function setUp() {
  const meeting = new Meeting();
  const clock = { nowMs: 1_000 };
  const log = new RecordedLog();
  const server = (instanceId: string) => {
    const offers = new SharedOffers({
      ...{ ephemerals: meeting.ephemerals(instanceId), instanceId, log },
      serverId: instanceId,
      now: () => clock.nowMs,
    });
    offers.start(() => {});
    return offers;
  };
  return { meeting, clock, log, one: server("a"), two: server("b"), server };
}

const statesOf = ({ current }: SharedOffers) =>
  [...current.values()].map(({ id, state, seenMs }) => [id, state, seenMs])
    .sort();

Deno.test("a server hears what the others save, and nothing of its own", async () => {
  const { clock, one, two, server } = setUp();
  await one.save([agent("x", "ready"), agent("y", "serving"), agent("z")]);
  await two.save([agent("y", "ready")]);
  const third = server("c");
  const all = [["x", "ready", 1_000], ["y", "ready", 1_000], [
    "z",
    "unready",
    5,
  ]];
  assertEquals(statesOf(third), all);
  assertEquals(statesOf(one), [["y", "ready", 1_000]]);
  assertEquals(third.current.get("x")?.offers, agent("x").offers);
  // It announces it no more.
  clock.nowMs = 2_000;
  await one.save([agent("z")]);
  assertEquals(statesOf(third), [["y", "ready", 2_000], ["z", "unready", 5]]);
});

Deno.test("agents of a server that is gone have lost their links then", async () => {
  const { meeting, clock, one, two } = setUp();
  await one.save([agent("x", "ready"), agent("z")]);
  clock.nowMs = 7_000;
  meeting.end("a");
  clock.nowMs = 8_000;
  await two.save([agent("w", "ready")]);
  assertEquals(statesOf(two), [["x", "unready", 7_000], ["z", "unready", 5]]);
  clock.nowMs += 600_000;
  meeting.tell({ instanceId: "c", part: "member", text: "{}" });
  assertEquals(statesOf(two), []);
});

Deno.test("what a server has left that died counts when that is there again", async () => {
  const { meeting, clock, one, two } = setUp();
  await one.save([agent("x", "ready")]);
  const [[part, text]] = [...meeting.parts.get("a")!]
    .filter(([part]) => part !== "member") as [[string, string]];
  meeting.tell({ instanceId: "c", part, text: text.replaceAll("x", "w") });
  assertEquals(statesOf(two), [["w", "unready", 1_000], ["x", "ready", 1_000]]);
  clock.nowMs = 2_000;
  meeting.tell({ instanceId: "c", part: "member", text: "{}" });
  assertEquals(statesOf(two), [["w", "ready", 2_000], ["x", "ready", 2_000]]);
});

Deno.test("a text is written when it says something else", async () => {
  const { meeting, one } = setUp();
  await one.save([agent("x", "ready", 1), agent("y", "ready", 1)]);
  const { writes } = meeting;
  await one.save([agent("y", "ready", 2), agent("x", "ready", 2)]);
  assertEquals(meeting.writes, writes);
  await one.save([agent("x", "serving"), agent("y", "ready")]);
  assertEquals(meeting.writes, writes + 1);
});

Deno.test("what others say is bounded and checked, and so is what we say", async () => {
  const { meeting, log, one, two } = setUp();
  for (const text of ["", "{", "{}", "[1]", '[{"id":"x"}]', "null"]) {
    meeting.tell({ instanceId: "c", part: "agents-00", text });
  }
  assertEquals(statesOf(one), []);
  const large = { ...agent("x", "ready"), node: "n".repeat(SHARD_LENGTH_MAX) };
  await one.save([large]);
  assertEquals(statesOf(two), []);
  assertMatch(log.take().join(), /Cannot tell other servers of 1 agents/);
});

Deno.test("a server keeps for itself what it says, also while nobody hears it", async () => {
  const kept: RememberedAgent[][] = [];
  const { meeting, log } = setUp();
  const offers = new SharedOffers({
    ...{
      ephemerals: meeting.ephemerals("d"),
      instanceId: "d",
      log,
      now: Date.now,
    },
    serverId: "d",
    kept: {
      load: () => Promise.resolve([agent("old")]),
      save: (agents) => Promise.resolve(void kept.push([...agents])),
    },
  });
  assertEquals(await offers.load(), [agent("old")]);
  await offers.save([agent("x", "ready")]);
  assertEquals([kept.length, meeting.parts.get("d")!.size], [1, 0]);
});
