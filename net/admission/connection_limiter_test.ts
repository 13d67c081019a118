import { assert, assertEquals } from "@std/assert";
import { FakeTimers } from "../../tests/support/memory/fake_timers.ts";
import { forAll } from "../../tests/support/memory/prng.ts";
import { FAULTS_MAX, WEIGHT_OF_UNAUTHENTICATED } from "./penalty.ts";
import {
  type AdmittedConnection,
  ConnectionLimiter,
  FAULTY_PROCESSES_MAX,
  QUIET_SOURCES_MAX,
} from "./connection_limiter.ts";
import {
  ALL_LIMITS_DEFAULT,
  type ConnectionLimits,
  limitPlan,
  SOURCE_LIMITS_DEFAULT,
} from "./connection_limits.ts";
import { sourceOf } from "./source.ts";

const MANY: ConnectionLimits = {
  unauthenticated: 100,
  connections: 100,
  streams: 100,
  headerBytes: 1_000,
  resets: { burst: 100, perSecond: 10 },
  handshakes: { burst: 1e9, perSecond: 0 },
  work: { burst: 1e9, perSecond: 0 },
};

/** A limiter, what it said, and whom it closed. */
function limiterOf(limits: {
  readonly source?: Partial<ConnectionLimits>;
  readonly all?: Partial<ConnectionLimits>;
}) {
  const timers = new FakeTimers();
  const reached: string[] = [];
  const penalized: string[] = [];
  const closed: string[] = [];
  const limiter = new ConnectionLimiter({
    plan: {
      source: { ...MANY, ...limits.source },
      all: { ...MANY, ...limits.all },
    },
    clock: timers,
    reached: (limit, scope) => reached.push(`${scope} ${limit}`),
    penalized: (source) => penalized.push(source),
  });
  const enter = (address: string | undefined, name = address ?? "unix") =>
    limiter.enter(address, () => closed.push(name));
  /** As on the agent port. */
  const arrive = (address: string) => {
    const admitted = limiter.arrive(address, () => closed.push(address))!;
    assertEquals(admitted.takeHandshake(), true);
    return admitted;
  };
  return { timers, limiter, reached, penalized, closed, enter, arrive };
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
  const { limiter, reached, closed, enter } = limiterOf({
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
  assertEquals([limiter.connections, limiter.unauthenticated], [4, 3]);
});

Deno.test("a flood from many sources displaces itself, not who came through", () => {
  const { limiter, reached, closed, enter } = limiterOf({
    all: { unauthenticated: 5 },
  });
  const agent = enter("10.9.9.9:1")!;
  agent.known();
  for (let index = 0; index < 50; index++) enter(`10.0.0.${index}:1`);
  assertEquals([limiter.connections, limiter.unauthenticated], [6, 5]);
  assertEquals(reached.length, 45);
  assertEquals(closed.length, 45);
  assert(!closed.includes("10.9.9.9:1"));
});

Deno.test("a connection too many is refused, unless an unauthenticated peer can go for it", () => {
  const { reached, closed, enter } = limiterOf({ all: { connections: 3 } });
  const admittedConnections = [1, 2, 3].map((port) =>
    enter(`10.0.0.1:${port}`)!
  );
  admittedConnections[0]!.known();
  admittedConnections[1]!.known();
  assert(enter(undefined) !== undefined);
  assertEquals(closed, ["10.0.0.1:3"]);
  assertEquals(enter("10.0.0.2:1"), undefined);
  assertEquals(enter(undefined), undefined);
  assertEquals(reached, Array(3).fill("all connections"));
  admittedConnections[0]!.leave();
  admittedConnections[0]!.leave();
  assert(enter(undefined) !== undefined);
  assertEquals(enter(undefined), undefined);
});

Deno.test("the limit of one source leaves the others alone", () => {
  const { reached, enter } = limiterOf({ source: { connections: 2 } });
  for (const port of [1, 2]) enter(`10.0.0.1:${port}`)!.known();
  assertEquals(enter("10.0.0.1:3"), undefined);
  assert(enter("10.0.0.2:1") !== undefined);
  // Who may open a unix socket is known: it is nobody's source.
  for (let index = 0; index < 10; index++) assert(enter(undefined));
  assertEquals(reached, ["source connections"]);
});

Deno.test("streams and head bytes are shared by the connections of a source", () => {
  const { reached, enter } = limiterOf({
    source: { streams: 2, headerBytes: 10 },
    all: { streams: 3 },
  });
  const [one, two, other] = [
    enter("10.0.0.1:1")!,
    enter("10.0.0.1:2")!,
    enter("10.0.0.2:1")!,
  ];
  assertEquals([one, two, one].map((admitted) => admitted.takeStream()), [
    true,
    true,
    false,
  ]);
  assertEquals([other, other].map((admitted) => admitted.takeStream()), [
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
  const { timers, limiter, reached, enter } = limiterOf({
    source: { resets: { burst: 3, perSecond: 1 } },
  });
  let granted = 0;
  for (let index = 0; index < 10; index++) {
    const admitted = enter(`10.0.0.1:${index}`)!;
    if (admitted.takeReset()) granted++;
    admitted.leave();
  }
  assertEquals([granted, reached.length, limiter.sources], [3, 7, 0]);
  timers.advance(2_000);
  assertEquals(enter("10.0.0.1:9")!.takeReset(), true);
});

Deno.test("handshakes of unauthenticated peers are counted, whoever shows who it is gets its own back", () => {
  const { timers, reached, enter } = limiterOf({
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
  const { timers, reached, enter } = limiterOf({
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
  const { limiter, enter } = limiterOf({
    source: { resets: { burst: 1, perSecond: 0 } },
    all: { resets: { burst: 9_999, perSecond: 0 } },
  });
  const visit = (address: string) => {
    const admitted = enter(address)!;
    const granted = admitted.takeReset();
    admitted.leave();
    return granted;
  };
  assertEquals([visit("10.0.0.1:1"), visit("10.0.0.1:1")], [true, false]);
  for (let index = 0; index < QUIET_SOURCES_MAX; index++) {
    visit(`11.${index >> 8}.${index & 255}.1:1`);
  }
  assertEquals(limiter.sources, 0);
  assertEquals(visit("10.0.0.1:1"), true);
});

Deno.test("a source with too many faults is slowed down and reported once, others are not", () => {
  const { timers, penalized, enter, arrive } = limiterOf({});
  const isSlow = (address: string) => {
    const admitted = arrive(address);
    const isOn = admitted.penalty!.isOn(timers.now());
    admitted.known();
    admitted.leave();
    return isOn;
  };
  for (let index = 1; index <= 2 * FAULTS_MAX; index++) {
    const admitted = arrive(`10.0.0.1:${index}`);
    admitted.fault();
    admitted.fault();
    admitted.leave();
    assertEquals(isSlow("10.0.0.1:9"), index > FAULTS_MAX);
  }
  assertEquals([penalized, isSlow("10.0.0.2:1")], [["10.0.0.1"], false]);
  // Where all have shown a certificate there is none, nor for a unix socket.
  for (const address of ["10.0.0.3:1", undefined]) {
    for (let index = 0; index < 10; index++) enter(address)!.fault();
  }
  assertEquals(penalized.length, 1);
});

Deno.test("to say or do too much as an unauthenticated peer is a fault", () => {
  const { timers, arrive } = limiterOf({
    source: { work: { burst: 1, perSecond: 0 } },
  });
  const admittedConnections = [1, 2, 3, 4].map((port) =>
    arrive(`10.0.0.1:${port}`)
  );
  const { penalty } = admittedConnections[0]!;
  for (const admitted of admittedConnections.slice(0, 2)) {
    admitted.takeBytes(1e9);
  }
  for (const admitted of admittedConnections.slice(2)) {
    admitted.takeWork(2);
    admitted.takeWork(2);
  }
  assertEquals(penalty!.isOn(timers.now()), true);
});

Deno.test("an unauthenticated peer that leaves after a handshake counts a little, one evicted or known not", () => {
  const { timers, limiter, arrive } = limiterOf({});
  const { penalty } = arrive("10.0.0.1:1");
  const isOn = () => penalty!.isOn(timers.now());
  for (let index = 0; index < 100; index++) {
    const known = arrive("10.0.0.1:2");
    known.known();
    known.leave();
    arrive("10.0.0.1:3").evict();
    limiter.arrive("10.0.0.1:4", () => {})!.leave();
  }
  assertEquals(isOn(), false);
  const many = FAULTS_MAX / WEIGHT_OF_UNAUTHENTICATED;
  for (let index = 0; index < many; index++) arrive("10.0.0.1:5").leave();
  assertEquals(isOn(), false);
  arrive("10.0.0.1:6").leave();
  assertEquals(isOn(), true);
});

Deno.test("a hundred nodes behind one address join at once, each with a handshake that only looks", () => {
  const { timers, arrive } = limiterOf({});
  const { penalty } = arrive("10.0.0.1:1");
  for (let index = 0; index < 100; index++) {
    arrive("10.0.0.1:2").leave();
    const joining = arrive("10.0.0.1:3");
    joining.known({ looks: 1 });
    joining.leave();
    assertEquals(penalty!.isOn(timers.now()), false);
  }
  // One that is slowed down already gets its speed back by them.
  const looks = (FAULTS_MAX + 1) / WEIGHT_OF_UNAUTHENTICATED;
  for (let index = 0; index < looks; index++) arrive("10.0.0.1:4").leave();
  assertEquals(penalty!.isOn(timers.now()), true);
  for (let index = 0; index < looks; index++) {
    arrive("10.0.0.1:5").known({ looks: 1 });
  }
  assertEquals(penalty!.isOn(timers.now()), false);
});

Deno.test("a process at a unix socket is slowed down by itself, and they are forgotten", () => {
  const { timers, limiter, penalized, reached } = limiterOf({});
  const fault = (process: number) => {
    const admitted = limiter.enter(undefined, () => {}, process)!;
    admitted.fault();
    admitted.leave();
  };
  for (let index = 0; index <= FAULTS_MAX; index++) fault(7);
  const isSlow = (process: number) =>
    limiter.enter(undefined, () => {}, process)!.penalty!.isOn(timers.now());
  assertEquals([isSlow(7), isSlow(8), penalized], [true, false, ["process 7"]]);
  // Others at the socket have nothing to do with it.
  limiter.enter(undefined, () => {}, 7)!.refusePenalized();
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
    const here = new Set<AdmittedConnection>();
    const limiter = new ConnectionLimiter({
      plan: { source: { ...MANY, ...source }, all: { ...MANY, ...all } },
      clock: timers,
      reached: () => {},
    });
    for (let step = 0; step < 300; step++) {
      if (prng.below(3) > 0) {
        const address = prng.below(4) === 0
          ? undefined
          : `10.0.0.${prng.below(4)}:1`;
        let admitted: AdmittedConnection | undefined = undefined;
        admitted = limiter.enter(address, () => here.delete(admitted!));
        if (admitted !== undefined) here.add(admitted);
      } else if (here.size > 0) {
        const admitted = prng.pick([...here]);
        if (prng.below(2) === 0) admitted.known();
        else {
          admitted.leave();
          here.delete(admitted);
        }
      }
      assertEquals(limiter.connections, here.size);
      assert(limiter.connections <= all.connections);
      assert(limiter.unauthenticated <= all.unauthenticated);
    }
    for (const admitted of here) admitted.leave();
    assertEquals([
      limiter.connections,
      limiter.unauthenticated,
      limiter.sources,
    ], [
      0,
      0,
      0,
    ]);
  }));

Deno.test("what was not chosen stays below what there are descriptors for", () => {
  assertEquals(limitPlan().all, ALL_LIMITS_DEFAULT);
  assertEquals(limitPlan().source, SOURCE_LIMITS_DEFAULT);
  const small = limitPlan({}, 1_024);
  assertEquals([small.all.connections, small.all.unauthenticated], [896, 448]);
  const chosen = limitPlan(
    { connectionsMax: 5_000, unauthenticatedMax: 7 },
    1_024,
  );
  assertEquals([chosen.all.connections, chosen.all.unauthenticated], [
    5_000,
    7,
  ]);
});
