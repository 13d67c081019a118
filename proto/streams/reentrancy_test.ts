import { assert, assertEquals, assertThrows } from "@std/assert";
import {
  type Engine,
  engineAndPeer,
  enginePair,
  openLogged,
} from "../../tests/support/memory/engine_pair.ts";
import { forAll } from "../../tests/support/memory/prng.ts";
import {
  requestFields,
  responseFields,
  StreamLog,
} from "../../tests/support/watch/stream_log.ts";
import type { ScriptedHttp2Peer } from "../../tests/support/peers/scripted_http2_peer.ts";
import type { Connection } from "./connection.ts";
import type { Stream } from "./stream.ts";
import { ErrorCode } from "../frames/wire_error.ts";
import {
  RecordedFaults,
  slip,
} from "../../tests/support/watch/recorded_faults.ts";

// Handlers may do anything from inside an event, except call `receive`.

Deno.test("a stream that is reset in its first event gets no more events", () => {
  const { engine, peer } = engineAndPeer("server");
  engine.onStream = (log, stream) => {
    log.onHead = () => stream.reset(8);
  };
  peer.headers(1, requestFields(), true);
  peer.headers(3, requestFields());
  peer.data(3, 5);
  peer.wants("RST_STREAM 1 8", "RST_STREAM 3 8");
  assertEquals(engine.accepted.map(({ events }) => events), [
    ["headers request"],
    ["headers request"],
  ]);
});

Deno.test("a stream may be refused before it is even delivered", () => {
  const { engine, peer } = engineAndPeer("server");
  engine.onStream = (_, stream) => stream.reset(7);
  peer.headers(1, requestFields(), true);
  peer.wants("RST_STREAM 1 7");
  assertEquals(engine.accepted[0]!.events, []);
});

Deno.test("a request may be answered whole in its first event", () => {
  const { engine, peer, connection } = engineAndPeer("server");
  engine.onStream = (log, stream) => {
    log.onHead = () => stream.sendHeaders(responseFields(), true);
  };
  peer.headers(1, requestFields(), true);
  peer.wants("HEADERS 1 200 end");
  assertEquals(engine.accepted[0]!.events, ["headers request", "end"]);
  assertEquals(connection.openStreams, 0);
});

Deno.test("an abort inside an event stops everything behind it in the chunk", () => {
  const { engine, peer, connection } = engineAndPeer("server");
  engine.onStream = (log) => {
    log.onPiece = () => connection.abort(0, "enough");
  };
  const head = peer.headersFrame(1, requestFields());
  const second = peer.headersFrame(3, requestFields());
  const ping = { type: "PING", ack: false, opaque: new Uint8Array(8) } as const;
  const piece = {
    type: "DATA",
    streamId: 1,
    endStream: true,
    data: new Uint8Array(5),
    isFirst: true,
    flowBytes: 5,
    paddingBytes: 0,
  } as const;
  peer.send(head, piece, second, ping);
  assertEquals(engine.accepted.length, 1);
  assertEquals(engine.accepted[0]!.events, [
    "headers request",
    "data 5",
    "reset lost 0",
  ]);
  peer.wants("GOAWAY 1 0");
  assertEquals(engine.ends.length, 1);
});

Deno.test("streams may be opened and reset while others are being lost", () => {
  const { engine, peer, connection } = engineAndPeer("client");
  const logs = [1, 2, 3].map(() => {
    return openLogged(connection);
  });
  const [first, second] = logs;
  first!.onReset = (reset) => {
    first!.resetBy = reset;
    second!.stream!.reset(8);
    assertThrows(() => connection.openStream(requestFields(), true, first!));
  };
  connection.abort(0, "over");
  assertEquals(logs.map(({ resetBy }) => resetBy?.by), [
    "lost",
    undefined,
    "lost",
  ]);
  assertEquals(engine.ends.length, 1);
  peer.listen();
});

Deno.test("receive() inside an event is our mistake, and is said to be", () => {
  const { engine, peer, connection } = engineAndPeer("server");
  engine.onStream = (log) => {
    log.onHead = () =>
      void assertThrows(
        () => connection.receive(Uint8Array.of(0)),
        TypeError,
      );
  };
  peer.headers(1, requestFields());
  assertEquals(engine.accepted[0]!.events, ["headers request"]);
});

Deno.test("what both ends must not send is our mistake, not the peer's", () => {
  const { engine, peer } = engineAndPeer("server");
  peer.headers(1, requestFields());
  const stream = engine.accepted[0]!.stream!;
  assertThrows(() => stream.end(), TypeError);
  stream.sendHeaders(responseFields(), false);
  assertThrows(() => stream.sendHeaders(responseFields(), false), TypeError);
  assertThrows(() => stream.consumed(1), RangeError);
  stream.end();
  assertThrows(() => stream.end(), TypeError);
  assertThrows(() => stream.sendHeaders(responseFields(), true), TypeError);
});

Deno.test("handlers that do anything at any time never break an engine", () =>
  forAll(60, (prng) => {
    const { client, server, pipe } = enginePair({
      prng,
      server: { settings: { maxConcurrentStreams: 5 } },
    });
    const streams: Stream[] = [];
    const act = (log: StreamLog, stream: Stream | undefined) => {
      if (stream === undefined) return;
      const draw = prng.below(60);
      if (log.resetBy !== undefined) {
        stream.reset(8);
      } else if (draw < 6) {
        stream.reset(prng.below(14));
      } else if (draw < 20) {
        stream.write(new Uint8Array(prng.below(50_000)));
      } else if (draw < 22) {
        prng.pick(streams).reset(8);
      } else if (draw < 40) {
        stream.awaitRoom();
      } else if (draw === 59 && prng.below(10) === 0) {
        prng.pick([client, server]).connection.abort(0, "mood");
      } else if (draw === 58) {
        prng.pick([client, server]).connection.shutdown("mood");
      }
    };
    const restless = (log: StreamLog) => {
      for (const name of ["onHead", "onRoom", "onOver"] as const) {
        log[name] = () => act(log, log.stream);
      }
      log.onPiece = (chunk) => {
        log.stream?.consumed(chunk.length);
        act(log, log.stream);
      };
    };
    server.onStream = (log, stream) => {
      restless(log);
      streams.push(stream);
      if (prng.below(8) === 0) return stream.reset(7);
      stream.sendHeaders(responseFields(), prng.below(4) === 0);
    };
    for (let step = 0; step < 200; step++) {
      if (client.connection.isUsable && prng.below(2) === 0) {
        const log = new StreamLog();
        restless(log);
        log.stream = client.connection.openStream(
          requestFields(),
          prng.below(4) === 0,
          log,
        );
        streams.push(log.stream);
      }
      pipe.step();
    }
    // Only what one end has reset while the other was about to speak is left
    // unsaid: no end has taken the other for a breaker of rules.
    for (const { ends } of [client, server]) {
      assert(ends.length <= 1);
      assertEquals(ends[0]?.error, undefined);
    }
  }));

// A stream learns of its end before the connection's owner learns of its.

/** Opens requests that write down whether the connection was over before them. */
function openWatched(engine: Engine, count: number): StreamLog[] {
  return Array.from({ length: count }, () => {
    const log = new StreamLog();
    const onReset = log.onReset.bind(log);
    log.onReset = (reset) => {
      onReset(reset);
      log.events.push(`connections ended: ${engine.ends.length}`);
    };
    log.stream = engine.connection.openStream(requestFields(), false, log);
    return log;
  });
}

function reported(logs: readonly StreamLog[]): string[] {
  return logs.map(({ events }) => events.join(", "));
}

const REFUSED_FIRST = "reset refused 7, connections ended: 0";

/** How many streams a peer lets us open, what ends them, what each is told. */
// deno-fmt-ignore: a case is a line.
const LAST: readonly (readonly [
  name: string, opened: number, allowed: number,
  end: (peer: ScriptedHttp2Peer, connection: Connection) => void,
  told: string,
])[] = [
  ["GOAWAY that refuses every stream, also those that wait, ends the connection last", 4, 2,
    (peer) => peer.goaway(0), REFUSED_FIRST],
  ["the reset of the last stream behind GOAWAY is reported before the end", 1, 9, (peer) => {
    peer.goaway(1);
    peer.reset(1, ErrorCode.CANCEL);
  }, "reset peer 8, connections ended: 0"],
  ["a mistake that costs the last stream is reported before the end", 1, 9, (peer) => {
    peer.goaway(1);
    peer.data(1, 5); // In front of a response.
  }, "reset local 1, connections ended: 0"],
  ["a drain that refuses what waits ends the connection last", 2, 0,
    (_, connection) => connection.shutdown("enough"), REFUSED_FIRST],
];

for (const [name, opened, allowed, end, told] of LAST) {
  Deno.test(name, () => {
    const { engine, peer, connection } = engineAndPeer("client");
    peer.settings({ id: 3, value: allowed });
    const logs = openWatched(engine, opened);
    end(peer, connection);
    assertEquals(reported(logs), new Array(opened).fill(told));
    const isDrain = allowed === 0;
    assertEquals(engine.goaways.length, isDrain ? 0 : 1);
    assertEquals(engine.ends.map(({ by }) => by === "local"), [isDrain]);
  });
}

Deno.test("a handler that resets the others ends nothing before all were notified", () => {
  const { engine, peer } = engineAndPeer("client");
  const logs = openWatched(engine, 3);
  const [first, second, third] = logs;
  const onReset = first!.onReset.bind(first);
  first!.onReset = (reset) => {
    second!.stream!.reset(ErrorCode.CANCEL);
    onReset(reset);
  };
  peer.goaway(0);
  assertEquals(reported([first!, second!, third!]), [
    "reset refused 7, connections ended: 0",
    "",
    "reset refused 7, connections ended: 0",
  ]);
  assertEquals(engine.ends.length, 1);
});

const bytes = new Uint8Array(5);

/** A handler of the server's that throws, and what makes it run. */
// deno-fmt-ignore: a case is a line.
const ENTRIES: readonly (readonly [
  name: string, spoil: (log: StreamLog) => void, provoke?: (stream: Stream) => void,
])[] = [
  ["onHeaders", (log) => log.onHead = slip],
  ["onData", (log) => log.onPiece = slip, (stream) => stream.write(bytes)],
  ["onEnd", (log) => log.onOver = slip, (stream) => stream.end()],
  ["onTrailers", (log) => log.onTrailers = slip, (stream) => stream.sendHeaders([{ name: "a", value: "b" }], true)],
  ["onWritable", (log) => {
    log.onRoom = slip;
    log.onHead = () => {
      log.stream!.sendHeaders(responseFields(), false);
      log.stream!.awaitRoom();
    };
  }],
  ["onReset", (log) => log.onReset = slip, (stream) => stream.reset(8)],
];

for (const [name, spoil, provoke] of ENTRIES) {
  Deno.test(`an ${name} that throws ends its stream, and no other`, () => {
    using recorded = new RecordedFaults();
    const { client, server, pipe } = enginePair();
    const beside = open(client);
    pipe.settle();
    server.onStream = spoil;
    const spoiled = open(client);
    pipe.settle();
    provoke?.(spoiled.stream!);
    pipe.settle();
    assertEquals(recorded.faults, ["stream: a slip"]);
    if (name !== "onReset") assertEquals(spoiled.events.at(-1), "reset peer 2");

    server.onStream = () => {};
    const behind = open(client);
    for (const log of [beside, behind]) log.stream!.write(bytes);
    pipe.settle();
    const [first, , last] = server.accepted;
    assertEquals([first?.bodyBytes, last?.bodyBytes], [5, 5]);
    assertEquals([client.ends, server.ends], [[], []]);
    assertEquals(server.connection.openStreams, 2);
  });
}

Deno.test("an onStream that throws refuses the request, and no other", () => {
  using recorded = new RecordedFaults();
  const { client, server, pipe } = enginePair();
  server.onStream = slip;
  const refused = open(client);
  pipe.settle();
  server.onStream = () => {};
  open(client).stream!.write(bytes);
  pipe.settle();
  assertEquals(recorded.faults, ["stream: a slip"]);
  assertEquals(refused.events, ["reset peer 2"]);
  assertEquals(server.accepted[1]?.bodyBytes, 5);
});

Deno.test("all streams hear of a lost path, whoever throws", () => {
  using recorded = new RecordedFaults();
  const { client, server, pipe } = enginePair();
  const logs = Array.from({ length: 5 }, () => open(client));
  pipe.settle();
  server.accepted[1]!.onReset = slip;
  server.connection.transportClosed(new Error("gone"));
  assertEquals(recorded.faults, ["stream: a slip"]);
  const resets = server.accepted.map(({ resetBy }) => resetBy?.by);
  assertEquals(resets, ["lost", undefined, "lost", "lost", "lost"]);
  assertEquals(server.ends.length, 1);
  assert(logs.every(({ stream }) => stream !== undefined));
});

function open(client: Engine): StreamLog {
  return openLogged(client.connection);
}
