/**
 * A handler that throws costs its stream. Those beside it on the connection do
 * not notice.
 */

import { assert, assertEquals } from "@std/assert";
import {
  type Engine,
  enginePair,
} from "../../tests/support/memory/engine_pair.ts";
import {
  RecordedFaults,
  slip,
} from "../../tests/support/watch/recorded_faults.ts";
import {
  requestFields,
  responseFields,
  StreamLog,
} from "../../tests/support/watch/stream_log.ts";

/** A handler of the server's that throws, and what makes it run. */
interface Entry {
  spoil(log: StreamLog, server: Engine): void;
  provoke(stream: ReturnType<Engine["connection"]["openStream"]>): void;
}

const bytes = new Uint8Array(5);

const ENTRIES: Readonly<Record<string, Entry>> = {
  onHeaders: {
    spoil: (log) => log.onHead = slip,
    provoke: () => {},
  },
  onData: {
    spoil: (log) => log.onPiece = slip,
    provoke: (stream) => stream.write(bytes),
  },
  onEnd: {
    spoil: (log) => log.onOver = slip,
    provoke: (stream) => stream.end(),
  },
  onTrailers: {
    spoil: (log) => log.onTrailers = slip,
    provoke: (stream) => stream.sendHeaders([{ name: "a", value: "b" }], true),
  },
  onWritable: {
    spoil: (log) => {
      log.onRoom = slip;
      log.onHead = () => {
        log.stream!.sendHeaders(responseFields(), false);
        log.stream!.awaitRoom();
      };
    },
    provoke: () => {},
  },
  onReset: {
    spoil: (log) => log.onReset = slip,
    provoke: (stream) => stream.reset(8),
  },
};

for (const [name, { spoil, provoke }] of Object.entries(ENTRIES)) {
  Deno.test(`an ${name} that throws ends its stream, and no other`, () => {
    using recorded = new RecordedFaults();
    const { client, server, pipe } = enginePair();
    const beside = open(client);
    pipe.settle();
    server.onStream = (log) => spoil(log, server);
    const spoiled = open(client);
    pipe.settle();
    provoke(spoiled.stream!);
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
  const log = new StreamLog();
  log.stream = client.connection.openStream(requestFields(), false, log);
  return log;
}
