import { assert, assertEquals } from "@std/assert";
import { FakeTimers } from "../../tests/support/memory/fake_timers.ts";
import {
  type AdminRig,
  adminScene,
} from "../../tests/support/rigs/admin_rig.ts";
import { soon } from "../../tests/support/watch/event_loop.ts";
import { turn } from "./node_view.ts";
import { ITEMS_MAX, WATCH_TICK_MS } from "./watch_feed.ts";

/** One that reads when it is told to. */
class Screen {
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>;
  #text = "";

  private constructor(
    response: Response,
    private readonly gone: AbortController,
  ) {
    this.#reader = response.body!.getReader();
  }

  static async open(rig: AdminRig, lists: string): Promise<Screen> {
    const gone = new AbortController();
    const path = `/v1/watch?lists=${lists}`;
    const response = await rig.ask(path, "GET", undefined, gone.signal);
    assertEquals(response.status, 200);
    return new Screen(response, gone);
  }

  /** The next event. */
  // deno-lint-ignore no-explicit-any -- whatever it is.
  async next(): Promise<{ readonly name: string; readonly data: any }> {
    for (;;) {
      const [, name, data] =
        /^(?::[^\n]*\n\n)*event: (\w+)\ndata: (.*)\n\n/.exec(this.#text) ?? [];
      if (name !== undefined) {
        this.#text = this.#text.slice(this.#text.indexOf(data!) + data!.length)
          .trimStart();
        return { name, data: JSON.parse(data!) };
      }
      const { value, done } = await this.#reader.read();
      if (done) throw new Error("the events have ended");
      this.#text += new TextDecoder().decode(value);
    }
  }

  leave(): void {
    this.gone.abort();
  }
}

/** Until the next look is waited for. */
async function tick(timers: FakeTimers): Promise<void> {
  assert(await soon(() => timers.pendingMs.includes(WATCH_TICK_MS)));
  timers.advance(WATCH_TICK_MS);
}

adminScene(
  "a screen has all of it first, then what is other",
  async (rig, timers) => {
    const link = rig.link("edge-1");
    rig.link("edge-2");
    rig.events.note("linked", "linked", { node: "edge-1" });
    const screen = await Screen.open(rig, "nodes,events");
    assertEquals((await screen.next()).data.nodes.online, 2);
    const whole = await screen.next();
    assertEquals([whole.name, whole.data.isWhole], ["nodes", true]);
    assertEquals(whole.data.changed.length, 2);
    assertEquals((await screen.next()).data[0].node, "edge-1");
    rig.unlink(link, "gone");
    await tick(timers);
    assertEquals((await screen.next()).data.nodes.online, 1);
    const change = await screen.next();
    assertEquals(
      [change.data.isWhole, change.data.changed.length, change.data.gone],
      [false, 1, []],
    );
    assertEquals(change.data.changed[0].state, "offline");
    // Nothing is other now, and nothing has happened.
    await tick(timers);
    assertEquals((await screen.next()).name, "status");
    rig.history.forget("edge-1");
    await tick(timers);
    assertEquals((await screen.next()).name, "status");
    assertEquals((await screen.next()).data.gone, ["edge-1"]);
    screen.leave();
  },
);

adminScene(
  "who reads slowly gets fewer, and nothing that is out of date",
  async (rig, timers) => {
    const link = rig.link("edge-1");
    const screen = await Screen.open(rig, "nodes");
    await screen.next();
    await screen.next();
    // It reads nothing while seven ticks pass.
    for (let at = 1; at <= 7; at++) {
      link.roundTripMs = at;
      await tick(timers);
    }
    assert(await soon(() => timers.pendingMs.includes(WATCH_TICK_MS)));
    const seen: number[] = [];
    while (seen.at(-1) !== 7) {
      const { name, data } = await screen.next();
      if (name === "nodes") seen.push(data.changed[0].roundTripMs);
    }
    assert(seen.length <= 2, `it was told ${seen}`);
    screen.leave();
  },
);

adminScene("a long list comes in pieces", async (rig) => {
  const count = ITEMS_MAX * 2 + 1;
  for (let at = 0; at < count; at++) rig.link(`n${at}`);
  const screen = await Screen.open(rig, "nodes");
  await screen.next();
  const sizes: [boolean, number][] = [];
  for (let piece = 0; piece < 3; piece++) {
    const { data } = await screen.next();
    sizes.push([data.isWhole, data.changed.length]);
  }
  assertEquals(sizes, [[true, ITEMS_MAX], [false, ITEMS_MAX], [false, 1]]);
  screen.leave();
});

adminScene(
  "nothing is made while nobody watches",
  async (rig, timers) => {
    const screens: Screen[] = [];
    for (let at = 0; at < 40; at++) {
      screens.push(await Screen.open(rig, ""));
    }
    for (const screen of screens) {
      await screen.next();
      screen.leave();
    }
    // The history's own timer stays.
    assert(await soon(() => timers.pendingCount === 1));
    assertEquals((await rig.ask("/v1/watch?lists=luck")).status, 400);
  },
);

adminScene(
  "who comes after the last has left sees what is there now",
  async (rig) => {
    // So many that not each look is at all of them.
    for (let at = 0; at < 1_600; at++) rig.link(`n${at}`);
    const hasty = await Screen.open(rig, "nodes");
    // In the midst of the first look, which takes many turns.
    hasty.leave();
    for (let at = 0; at < 5_000; at++) await turn();
    rig.link("a-late-one");
    const screen = await Screen.open(rig, "");
    assertEquals((await screen.next()).data.nodes.online, 1_601);
    screen.leave();
  },
);
