import { assertEquals } from "@std/assert";
import {
  Engine,
  engineAndPeer,
} from "../../tests/support/memory/engine_pair.ts";
import {
  requestFields,
  StreamLog,
} from "../../tests/support/watch/stream_log.ts";
import type { Connection } from "./connection.ts";

// What a driver can rely on: it is told once, and never too late.

function listened(connection: Connection): { calls: number } {
  const count = { calls: 0 };
  connection.setOutputListener(() => count.calls++);
  return count;
}

Deno.test("a driver that comes late is notified of what waits already", () => {
  const { connection } = new Engine("client");
  assertEquals(listened(connection).calls, 1);
});

Deno.test("a driver is notified once per burst, until it has taken everything", () => {
  const { peer, connection } = engineAndPeer("client");
  const received = listened(connection);
  const log = new StreamLog();
  const stream = connection.openStream(requestFields(), false, log);
  stream.write(new Uint8Array(10));
  assertEquals(received.calls, 1);
  connection.takeOutput();
  stream.write(new Uint8Array(10)); // A write is in flight: it looks again.
  assertEquals(connection.takeOutput(), undefined);
  assertEquals(received.calls, 1);
  connection.outputWritten();
  peer.wants("DATA 1 10");
  stream.write(new Uint8Array(10));
  assertEquals(received.calls, 2);
});

Deno.test("an end without a word is reported too, so that the driver can close", () => {
  const { connection } = engineAndPeer("client");
  const received = listened(connection);
  connection.receiveEnd();
  assertEquals([received.calls, connection.isFinished], [1, true]);
});

Deno.test("who asks for room that there is gets it with the next output", () => {
  const { connection } = engineAndPeer("client");
  const log = new StreamLog();
  const stream = connection.openStream(requestFields(), false, log);
  connection.takeOutput();
  connection.outputWritten();
  connection.takeOutput();
  const received = listened(connection);
  stream.awaitRoom();
  assertEquals([received.calls, log.events], [1, []]);
  log.onRoom = () => stream.write(new Uint8Array(4));
  assertEquals(connection.takeOutput()?.length, 13);
  assertEquals(log.events, ["writable"]);
});
