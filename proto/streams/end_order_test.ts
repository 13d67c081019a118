import { assertEquals } from "@std/assert";
import { engineAndPeer } from "../../tests/support/memory/engine_pair.ts";
import type { Engine } from "../../tests/support/memory/engine_pair.ts";
import {
  requestFields,
  StreamLog,
} from "../../tests/support/watch/stream_log.ts";
import { ErrorCode } from "../frames/wire_error.ts";

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

Deno.test("GOAWAY that refuses every stream, also those that wait, ends the connection last", () => {
  const { engine, peer } = engineAndPeer("client");
  peer.send({
    type: "SETTINGS",
    ack: false,
    settings: [{ id: 3, value: 2 }],
  });
  const logs = openWatched(engine, 4);
  peer.goaway(0);
  assertEquals(
    reported(logs),
    new Array(4).fill("reset refused 7, connections ended: 0"),
  );
  assertEquals(engine.ends.length, 1);
  assertEquals(engine.goaways.length, 1);
});

Deno.test("the reset of the last stream behind GOAWAY is reported before the end", () => {
  const { engine, peer } = engineAndPeer("client");
  const logs = openWatched(engine, 1);
  peer.goaway(1);
  peer.reset(1, ErrorCode.CANCEL);
  assertEquals(reported(logs), ["reset peer 8, connections ended: 0"]);
  assertEquals(engine.ends.length, 1);
});

Deno.test("a mistake that costs the last stream is reported before the end", () => {
  const { engine, peer } = engineAndPeer("client");
  const logs = openWatched(engine, 1);
  peer.goaway(1);
  peer.data(1, 5); // In front of a response.
  assertEquals(reported(logs), ["reset local 1, connections ended: 0"]);
  assertEquals(engine.ends.length, 1);
});

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

Deno.test("a drain that refuses what waits ends the connection last", () => {
  const { engine, peer, connection } = engineAndPeer("client");
  peer.send({
    type: "SETTINGS",
    ack: false,
    settings: [{ id: 3, value: 0 }],
  });
  const logs = openWatched(engine, 2);
  connection.shutdown("enough");
  assertEquals(
    reported(logs),
    new Array(2).fill("reset refused 7, connections ended: 0"),
  );
  assertEquals(engine.ends.map(({ by }) => by), ["local"]);
});
