import { assert, assertEquals } from "@std/assert";
import { FakeLink } from "../../tests/support/memory/fake_link.ts";
import { FakeTimers } from "../../tests/support/memory/fake_timers.ts";
import type { LinkPeer } from "../../proto/link/link.ts";
import type { DuplicatePolicy } from "../options.ts";
import {
  DUPLICATE_ANSWER_MS,
  Duplicates,
  RECHECK_MS,
  SETTLE_MS,
} from "./duplicates.ts";

/** A link that answers when it is asked for life, as long as it is alive. */
class Link extends FakeLink {
  isAlive = true;
  readonly warnings: string[] = [];

  constructor(
    readonly timers: FakeTimers,
    peer: Partial<LinkPeer> & { key?: string },
  ) {
    super("gw");
    const { key = "key-1", ...more } = peer;
    Object.assign(this.peer, {
      identity: {
        ...this.peer.identity,
        kind: "certificate",
        certificate: { publicKeySha256: key },
      },
      ...more,
    });
  }

  override checkLiveness(): void {
    super.checkLiveness();
    if (!this.isAlive) return;
    this.timers.after(5, () => this.lastHeardMs = this.timers.now());
  }

  warnOfDuplicate(message: string): void {
    this.warnings.push(message);
  }
}

class Rig {
  readonly timers = new FakeTimers();
  readonly reported: string[] = [];
  readonly links: Link[] = [];
  readonly duplicates: Duplicates;

  constructor(policy: DuplicatePolicy = "warn") {
    const say = (what: string) => {
      return (duplicate: { readonly instances: readonly unknown[] }) => {
        this.reported.push(`${what} ${duplicate.instances.length}`);
        return what;
      };
    };
    this.duplicates = new Duplicates({
      policy,
      timers: this.timers,
      wallClock: () => this.timers.now(),
      observer: {
        found: say("found"),
        lasts: say("lasts"),
        over: say("over"),
        refused: say("refused"),
      },
    });
  }

  link(peer: Partial<LinkPeer> & { key?: string }): Link {
    const link = new Link(this.timers, peer);
    this.links.push(link);
    this.duplicates.linked(link);
    return link;
  }

  pass(ms: number = SETTLE_MS + DUPLICATE_ANSWER_MS): string[] {
    this.timers.advance(ms);
    return this.reported.splice(0);
  }
}

const A = { instanceId: "instance-a" };
const B = { instanceId: "instance-b" };

Deno.test("two live processes with one key are found, warned, and over", () => {
  const rig = new Rig();
  const [one, two] = [rig.link(A), rig.link(B)];
  assertEquals(rig.pass(SETTLE_MS + DUPLICATE_ANSWER_MS - 1), []);
  assertEquals(rig.pass(1), ["found 2"]);
  assertEquals([one.warnings, two.warnings], [["found"], ["found"]]);
  assertEquals(rig.duplicates.count, 1);
  assertEquals(rig.pass(RECHECK_MS + DUPLICATE_ANSWER_MS), ["lasts 2"]);
  // One that comes later is warned as well, once.
  const third = rig.link({ instanceId: "instance-c" });
  assertEquals(rig.pass(RECHECK_MS + DUPLICATE_ANSWER_MS), ["lasts 3"]);
  assertEquals([one.warnings.length, third.warnings.length], [1, 1]);
  rig.duplicates.unlinked(two);
  rig.duplicates.unlinked(third);
  assertEquals(rig.pass(0), ["over 3"]);
  assertEquals(rig.duplicates.count, 0);
  rig.duplicates.unlinked(one);
  assertEquals(rig.timers.pendingCount, 0);
});

Deno.test("what is no copy is not called one", () => {
  const cases: Record<string, (rig: Rig) => void> = {
    "several links of one process": (rig) => {
      for (let count = 0; count < 4; count++) rig.link(A);
    },
    "another key, another agent": (rig) => {
      rig.link(A);
      rig.link({ ...B, key: "key-2" });
      rig.link({ ...B, agentId: "other" });
    },
    "a restart": (rig) => {
      const old = rig.link(A);
      rig.duplicates.unlinked(old);
      rig.link(B);
    },
    "a restart whose end is noticed late": (rig) => {
      const old = rig.link(A);
      rig.link(B);
      rig.timers.advance(SETTLE_MS - 1);
      rig.duplicates.unlinked(old);
    },
    "a link whose line was cut": (rig) => {
      rig.link(A).isAlive = false;
      rig.link(B);
    },
    "a new process beside one that drains": (rig) => {
      const old = rig.link(A);
      rig.link(B);
      old.isDraining = true;
      rig.duplicates.changed(old);
    },
    "one that drains before it is reported": (rig) => {
      const old = rig.link(A);
      rig.link(B);
      rig.timers.advance(SETTLE_MS + 1);
      old.isDraining = true;
    },
    "agents of an older version": (rig) => {
      rig.link({ remoteAddress: "10.0.0.7:1" });
      rig.link({ remoteAddress: "10.0.0.9:1" });
    },
    "a Go agent that comes again from the same place": (rig) => {
      rig.link({ carrier: "packets", remoteAddress: "10.0.0.7:1" });
      rig.link({ carrier: "packets", remoteAddress: "[::ffff:10.0.0.7]:2" });
    },
  };
  for (const [name, play] of Object.entries(cases)) {
    const rig = new Rig();
    play(rig);
    const reported = rig.pass(10 * RECHECK_MS);
    // One that does drain is over, and was never a copy.
    assertEquals(reported.filter((line) => !line.startsWith("over")), [], name);
  }
});

Deno.test("Go agents are distinguished by where they are, and old ones from new ones", () => {
  for (
    const [one, other] of [
      [
        { carrier: "packets", remoteAddress: "10.0.0.7:1" },
        { carrier: "packets", remoteAddress: "10.0.0.9:1" },
      ],
      [{}, A],
      [A, { carrier: "packets", remoteAddress: "10.0.0.7:1" }],
    ] as const
  ) {
    const rig = new Rig();
    rig.link(one);
    rig.link(other);
    assertEquals(rig.pass(), ["found 2"]);
  }
});

Deno.test("a certificate that was renewed meanwhile is of the same key", () => {
  const rig = new Rig();
  rig.link(A).peer.identity.fingerprint = "one";
  rig.link(B).peer.identity.fingerprint = "two";
  assertEquals(rig.pass(), ["found 2"]);
});

Deno.test("one that is slow to answer is asked again", () => {
  const rig = new Rig();
  rig.link(A).isAlive = false;
  rig.link(B);
  assertEquals(rig.pass(), []);
  rig.links[0]!.isAlive = true;
  assertEquals(rig.pass(), ["found 2"]);
});

Deno.test("agents that prove no key are nobody's copies", () => {
  const rig = new Rig("refuse");
  const link = new FakeLink("gw");
  rig.duplicates.linked(link);
  rig.duplicates.linked(new FakeLink("gw"));
  assertEquals(rig.duplicates.admit(link.peer), undefined);
  assertEquals(rig.pass(), []);
  rig.duplicates.unlinked(link);
});

Deno.test("with refuse the second one is refused while the first one lives", async () => {
  const rig = new Rig("refuse");
  const [first, second] = [new Link(rig.timers, A), new Link(rig.timers, B)];
  rig.duplicates.linked(first);
  assertEquals(rig.duplicates.admit(first.peer), undefined);
  const refused = rig.duplicates.admit(second.peer);
  rig.timers.advance(100);
  assertEquals((await refused)?.message, "refused");
  // One that does not answer is given up.
  first.isAlive = false;
  const admitted = rig.duplicates.admit(second.peer);
  rig.timers.advance(DUPLICATE_ANSWER_MS + 100);
  assertEquals(await admitted, undefined);
  // One that goes meanwhile, or says that it will.
  first.isAlive = true;
  const waiting = rig.duplicates.admit(second.peer);
  rig.duplicates.unlinked(first);
  rig.timers.advance(100);
  assertEquals(await waiting, undefined);
  first.isDraining = true;
  rig.duplicates.linked(first);
  assertEquals(rig.duplicates.admit(second.peer), undefined);
});

Deno.test("an instance that got in while the first one was silent goes when that is back", () => {
  const rig = new Rig("refuse");
  const [first, second] = [rig.link(A), rig.link(B)];
  rig.pass();
  assert(first.closed === undefined);
  assertEquals(second.closed, "refused");
});
