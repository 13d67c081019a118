import { assert, assertEquals } from "@std/assert";
import { FakeTimers } from "../../tests/support/memory/fake_timers.ts";
import { forAll } from "../../tests/support/memory/prng.ts";
import { FAULTS_MAX, WEIGHT_OF_UNAUTHENTICATED } from "./brake.ts";
import {
  FAULTY_PROCESSES_MAX,
  type Guest,
  Intake,
  QUIET_SOURCES_MAX,
} from "./intake.ts";
import {
  ALL_LIMITS_DEFAULT,
  type IntakeLimits,
  intakePlan,
  SOURCE_LIMITS_DEFAULT,
} from "./intake_limits.ts";
import { sourceOf } from "./source.ts";

const MANY: IntakeLimits = {
  unauthenticated: 100,
  connections: 100,
  streams: 100,
  headerBytes: 1_000,
  resets: { burst: 100, perSecond: 10 },
  handshakes: { burst: 1e9, perSecond: 0 },
  work: { burst: 1e9, perSecond: 0 },
};

/** An intake, what it said, and whom it closed. */
function intakeOf(limits: {
  readonly source?: Partial<IntakeLimits>;
  readonly all?: Partial<IntakeLimits>;
}) {
  const timers = new FakeTimers();
  const reached: string[] = [];
  const braked: string[] = [];
  const closed: string[] = [];
  const intake = new Intake({
    plan: {
      source: { ...MANY, ...limits.source },
      all: { ...MANY, ...limits.all },
    },
    clock: timers,
    reached: (limit, scope) => reached.push(`${scope} ${limit}`),
    braked: (source) => braked.push(source),
  });
  const enter = (address: string | undefined, name = address ?? "unix") =>
    intake.enter(address, () => closed.push(name));
  /** As on the agent port. */
  const arrive = (address: string) => {
    const guest = intake.arrive(address, () => closed.push(address))!;
    assertEquals(guest.takeHandshake(), true);
    return guest;
  };
  return { timers, intake, reached, braked, closed, enter, arrive };
}

Deno.test("a source is an address, or the network of one subscriber", () => {
  assertEquals(sourceOf("10.0.0.1:4711"), "10.0.0.1");
  assertEquals(sourceOf("[::ffff:10.0.0.1]:4711"), "10.0.0.1");
  assertEquals(
    sourceOf("[2001:db8:1:2::5]:1"),
    sourceOf("[2001:db8:1:2:9::]:2"),
  );
  assert(sourceOf("[2001:db8:1:2::5]:1") !== sourceOf("[2001:db8:1:3::5]:1"));
});

Deno.test("the unauthenticated peer who has waited longest makes way, whoever is known stays", () => {
  const { intake, reached, closed, enter } = intakeOf({
    source: { unauthenticated: 2 },
  });
  const known = enter("10.0.0.1:1")!;
  known.known();
  enter("10.0.0.1:2");
  enter("10.0.0.2:1");
  enter("10.0.0.1:3");
  assertEquals([reached, closed], [[], []]);
  assert(enter("10.0.0.1:4") !== undefined);
  assertEquals([reached, closed], [["source unauthenticated_connections"], [
    "10.0.0.1:2",
  ]]);
  assertEquals([intake.connections, intake.unauthenticated], [4, 3]);
});

Deno.test("a flood from many sources displaces itself, not who came through", () => {
  const { intake, reached, closed, enter } = intakeOf({
    all: { unauthenticated: 5 },
  });
  const agent = enter("10.9.9.9:1")!;
  agent.known();
  for (let index = 0; index < 50; index++) enter(`10.0.0.${index}:1`);
  assertEquals([intake.connections, intake.unauthenticated], [6, 5]);
  assertEquals(reached.length, 45);
  assertEquals(closed.length, 45);
  assert(!closed.includes("10.9.9.9:1"));
});

Deno.test("a connection too many is refused, unless an unauthenticated peer can go for it", () => {
  const { reached, closed, enter } = intakeOf({ all: { connections: 3 } });
  const guests = [1, 2, 3].map((port) => enter(`10.0.0.1:${port}`)!);
  guests[0]!.known();
  guests[1]!.known();
  assert(enter(undefined) !== undefined);
  assertEquals(closed, ["10.0.0.1:3"]);
  assertEquals(enter("10.0.0.2:1"), undefined);
  assertEquals(enter(undefined), undefined);
  assertEquals(reached, Array(3).fill("all connections"));
  guests[0]!.leave();
  guests[0]!.leave();
  assert(enter(undefined) !== undefined);
  assertEquals(enter(undefined), undefined);
});

Deno.test("the limit of one source leaves the others alone", () => {
  const { reached, enter } = intakeOf({ source: { connections: 2 } });
  for (const port of [1, 2]) enter(`10.0.0.1:${port}`)!.known();
  assertEquals(enter("10.0.0.1:3"), undefined);
  assert(enter("10.0.0.2:1") !== undefined);
  // Who may open a unix socket is known: it is nobody's source.
  for (let index = 0; index < 10; index++) assert(enter(undefined));
  assertEquals(reached, ["source connections"]);
});

Deno.test("streams and head bytes are shared by the connections of a source", () => {
  const { reached, enter } = intakeOf({
    source: { streams: 2, headerBytes: 10 },
    all: { streams: 3 },
  });
  const [one, two, other] = [
    enter("10.0.0.1:1")!,
    enter("10.0.0.1:2")!,
    enter("10.0.0.2:1")!,
  ];
  assertEquals([one, two, one].map((guest) => guest.takeStream()), [
    true,
    true,
    false,
  ]);
  assertEquals([other, other].map((guest) => guest.takeStream()), [
    true,
    false,
  ]);
  assertEquals([one.takeHeaderBytes(6), two.takeHeaderBytes(5)], [
    true,
    false,
  ]);
  one.giveHeaderBytes(6);
  one.giveStream();
  assertEquals([two.takeHeaderBytes(5), two.takeStream()], [true, true]);
  assertEquals(reached, [
    "source streams",
    "all streams",
    "source header_bytes",
  ]);
});

Deno.test("hanging up gives nobody a fresh budget of resets", () => {
  const { timers, intake, reached, enter } = intakeOf({
    source: { resets: { burst: 3, perSecond: 1 } },
  });
  let granted = 0;
  for (let index = 0; index < 10; index++) {
    const guest = enter(`10.0.0.1:${index}`)!;
    if (guest.takeReset()) granted++;
    guest.leave();
  }
  assertEquals([granted, reached.length, intake.sources], [3, 7, 0]);
  timers.advance(2_000);
  assertEquals(enter("10.0.0.1:9")!.takeReset(), true);
});

Deno.test("handshakes of unauthenticated peers are counted, whoever shows who it is gets its own back", () => {
  const { timers, reached, enter } = intakeOf({
    source: { handshakes: { burst: 3, perSecond: 1 } },
  });
  for (let index = 0; index < 50; index++) enter(`10.0.0.1:${index}`)!.known();
  for (let index = 0; index < 3; index++) enter(`10.0.0.1:${index}`)!.leave();
  assertEquals(enter("10.0.0.1:1"), undefined);
  assert(enter("10.0.0.2:1") !== undefined);
  assertEquals(reached, ["source handshakes"]);
  timers.advance(1_000);
  assert(enter("10.0.0.1:1") !== undefined);
});

Deno.test("unauthenticated peers of a source have so much work, and pay their debts", () => {
  const { timers, reached, enter } = intakeOf({
    source: { work: { burst: 10, perSecond: 10 } },
  });
  const [one, two] = [enter("10.0.0.1:1")!, enter("10.0.0.1:2")!];
  assertEquals([one.takeWork(5), two.takeWork(25), one.takeWork(1)], [
    true,
    true,
    false,
  ]);
  timers.advance(2_000);
  assertEquals(one.takeWork(1), false);
  timers.advance(1_000);
  assertEquals(one.takeWork(1), true);
  assertEquals(reached, ["source work", "source work"]);
});

Deno.test("sources that left are remembered up to a limit", () => {
  const { intake, enter } = intakeOf({
    source: { resets: { burst: 1, perSecond: 0 } },
    all: { resets: { burst: 9_999, perSecond: 0 } },
  });
  const visit = (address: string) => {
    const guest = enter(address)!;
    const granted = guest.takeReset();
    guest.leave();
    return granted;
  };
  assertEquals([visit("10.0.0.1:1"), visit("10.0.0.1:1")], [true, false]);
  for (let index = 0; index < QUIET_SOURCES_MAX; index++) {
    visit(`11.${index >> 8}.${index & 255}.1:1`);
  }
  assertEquals(intake.sources, 0);
  assertEquals(visit("10.0.0.1:1"), true);
});

Deno.test("a source with too many faults is slowed down and told of once, others are not", () => {
  const { timers, braked, enter, arrive } = intakeOf({});
  const isSlow = (address: string) => {
    const guest = arrive(address);
    const isOn = guest.brake!.isOn(timers.now());
    guest.known();
    guest.leave();
    return isOn;
  };
  for (let index = 1; index <= 2 * FAULTS_MAX; index++) {
    const guest = arrive(`10.0.0.1:${index}`);
    guest.fault();
    guest.fault();
    guest.leave();
    assertEquals(isSlow("10.0.0.1:9"), index > FAULTS_MAX);
  }
  assertEquals([braked, isSlow("10.0.0.2:1")], [["10.0.0.1"], false]);
  // Where all have shown a certificate there is none, nor for a unix socket.
  for (const address of ["10.0.0.3:1", undefined]) {
    for (let index = 0; index < 10; index++) enter(address)!.fault();
  }
  assertEquals(braked.length, 1);
});

Deno.test("to say or do too much as an unauthenticated peer is a fault", () => {
  const { timers, arrive } = intakeOf({
    source: { work: { burst: 1, perSecond: 0 } },
  });
  const guests = [1, 2, 3, 4].map((port) => arrive(`10.0.0.1:${port}`));
  const { brake } = guests[0]!;
  for (const guest of guests.slice(0, 2)) guest.takeBytes(1e9);
  for (const guest of guests.slice(2)) {
    guest.takeWork(2);
    guest.takeWork(2);
  }
  assertEquals(brake!.isOn(timers.now()), true);
});

Deno.test("an unauthenticated peer that leaves after a handshake counts a little, one evicted or known not", () => {
  const { timers, intake, arrive } = intakeOf({});
  const { brake } = arrive("10.0.0.1:1");
  const isOn = () => brake!.isOn(timers.now());
  for (let index = 0; index < 100; index++) {
    const known = arrive("10.0.0.1:2");
    known.known();
    known.leave();
    arrive("10.0.0.1:3").evict();
    intake.arrive("10.0.0.1:4", () => {})!.leave();
  }
  assertEquals(isOn(), false);
  const many = FAULTS_MAX / WEIGHT_OF_UNAUTHENTICATED;
  for (let index = 0; index < many; index++) arrive("10.0.0.1:5").leave();
  assertEquals(isOn(), false);
  arrive("10.0.0.1:6").leave();
  assertEquals(isOn(), true);
});

Deno.test("a process at a unix socket is slowed down by itself, and they are forgotten", () => {
  const { timers, intake, braked, reached } = intakeOf({});
  const fault = (process: number) => {
    const guest = intake.enter(undefined, () => {}, process)!;
    guest.fault();
    guest.leave();
  };
  for (let index = 0; index <= FAULTS_MAX; index++) fault(7);
  const isSlow = (process: number) =>
    intake.enter(undefined, () => {}, process)!.brake!.isOn(timers.now());
  assertEquals([isSlow(7), isSlow(8), braked], [true, false, ["process 7"]]);
  // Others at the socket have nothing to do with it.
  intake.enter(undefined, () => {}, 7)!.refuseBraked();
  assertEquals(reached, ["source faults"]);
  for (let process = 100; process < 100 + FAULTY_PROCESSES_MAX; process++) {
    fault(process);
  }
  assertEquals(isSlow(7), false);
});

Deno.test("whoever comes, goes and takes, no limit is passed and nothing is left behind", () =>
  forAll(50, (prng) => {
    const all = { unauthenticated: 6, connections: 12 };
    const source = { unauthenticated: 4, connections: 7 };
    const timers = new FakeTimers();
    const here = new Set<Guest>();
    const intake = new Intake({
      plan: { source: { ...MANY, ...source }, all: { ...MANY, ...all } },
      clock: timers,
      reached: () => {},
    });
    for (let step = 0; step < 300; step++) {
      if (prng.below(3) > 0) {
        const address = prng.below(4) === 0
          ? undefined
          : `10.0.0.${prng.below(4)}:1`;
        let guest: Guest | undefined = undefined;
        guest = intake.enter(address, () => here.delete(guest!));
        if (guest !== undefined) here.add(guest);
      } else if (here.size > 0) {
        const guest = prng.pick([...here]);
        if (prng.below(2) === 0) guest.known();
        else {
          guest.leave();
          here.delete(guest);
        }
      }
      assertEquals(intake.connections, here.size);
      assert(intake.connections <= all.connections);
      assert(intake.unauthenticated <= all.unauthenticated);
    }
    for (const guest of here) guest.leave();
    assertEquals([intake.connections, intake.unauthenticated, intake.sources], [
      0,
      0,
      0,
    ]);
  }));

Deno.test("what was not chosen stays below what there are descriptors for", () => {
  assertEquals(intakePlan().all, ALL_LIMITS_DEFAULT);
  assertEquals(intakePlan().source, SOURCE_LIMITS_DEFAULT);
  const small = intakePlan({}, 1_024);
  assertEquals([small.all.connections, small.all.unauthenticated], [896, 448]);
  const chosen = intakePlan(
    { connectionsMax: 5_000, unauthenticatedMax: 7 },
    1_024,
  );
  assertEquals([chosen.all.connections, chosen.all.unauthenticated], [
    5_000,
    7,
  ]);
});
