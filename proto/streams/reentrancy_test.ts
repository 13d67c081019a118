import { assert, assertEquals, assertThrows } from "@std/assert";
import {
  engineAndPeer,
  enginePair,
} from "../../tests/support/memory/engine_pair.ts";
import { forAll } from "../../tests/support/memory/prng.ts";
import {
  requestFields,
  responseFields,
  StreamLog,
} from "../../tests/support/watch/stream_log.ts";
import type { Stream } from "./stream.ts";

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
    const log = new StreamLog();
    log.stream = connection.openStream(requestFields(), false, log);
    return log;
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
