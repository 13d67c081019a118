import { assertEquals, assertRejects } from "@std/assert";
import { TunnelConn } from "../client/tunnel_conn.ts";
import {
  ConduitProbe,
  settled,
} from "../tests/support/memory/conduit_probe.ts";
import { MemoryConduit } from "../tests/support/memory/memory_conduit.ts";
import { CommandFailure, ExitCode } from "./program/exit_codes.ts";
import { netcat, type StandardStreams } from "./dial.ts";

const encode = (text: string) => new TextEncoder().encode(text);

/** Input that gives `words` and then ends or, for `"open"`, never does. */
function streams(
  words: readonly string[],
  then: "end" | "open" | "terminal",
): StandardStreams & { readonly received: () => string } {
  const left = words.map(encode);
  let received = "";
  return {
    received: () => received,
    input: {
      isTerminal: () => then === "terminal",
      read(into) {
        const chunk = left.shift();
        if (chunk !== undefined) {
          into.set(chunk);
          return Promise.resolve(chunk.length);
        }
        return then === "end" ? Promise.resolve(null) : new Promise(() => {});
      },
    },
    output: {
      write(bytes) {
        // A pipe takes what it likes; all of it must arrive nevertheless.
        const taken = bytes.subarray(0, 3);
        received += new TextDecoder().decode(taken);
        return Promise.resolve(taken.length);
      },
    },
  };
}

function connect(): { conn: TunnelConn; target: ConduitProbe } {
  const [ours, theirs] = MemoryConduit.pair();
  return { conn: new TunnelConn(ours), target: new ConduitProbe(theirs) };
}

Deno.test("netcat() carries both directions and ends when both have", async () => {
  const { conn, target } = connect();
  const io = streams(["hello, ", "target"], "end");
  const done = netcat(conn, io);
  await target.ended;
  assertEquals(target.text, "hello, target");
  target.send("and good bye");
  target.finish();
  await done;
  assertEquals(io.received(), "and good bye");
});

Deno.test("netcat() goes on sending after the other side has ended", async () => {
  const { conn, target } = connect();
  target.finish();
  const io = streams(["late words"], "end");
  await netcat(conn, io);
  assertEquals(target.text, "late words");
});

Deno.test("netcat() does not wait for a person to end their input", async () => {
  const { conn, target } = connect();
  target.finish();
  await netcat(conn, streams([], "terminal"));
});

Deno.test("netcat() ends quietly when nobody reads its output any more", async () => {
  const { conn, target } = connect();
  const io = streams([], "open");
  const write = () => Promise.reject(new Deno.errors.BrokenPipe("EPIPE"));
  const done = netcat(conn, { ...io, output: { write } });
  target.send("a line for somebody who has gone");
  await done;
});

Deno.test("netcat() says what is full when its output cannot be written", async () => {
  const { conn, target } = connect();
  const write = () =>
    Promise.reject(new Error("No space left on device (os error 28)"));
  const done = netcat(conn, { ...streams([], "open"), output: { write } });
  target.send("lost");
  const { code, message } = await assertRejects(() => done, CommandFailure);
  assertEquals(code, ExitCode.FAILURE);
  assertEquals(
    message,
    "Cannot write to standard output: No space left on device",
  );
});

Deno.test("netcat() reports a reset by its exit code, not as an end", async () => {
  const { conn, target } = connect();
  const done = netcat(conn, streams([], "open"));
  target.reset("connection reset by peer");
  const failure = await assertRejects(() => done, CommandFailure);
  assertEquals(failure.code, ExitCode.RESET);
});

Deno.test("netcat() reports a reset that comes after the other side's end", async () => {
  const { conn, target } = connect();
  const done = netcat(conn, streams(["asked"], "open"));
  target.finish();
  await target.received(5);
  await settled();
  target.reset("connection reset by peer");
  const failure = await assertRejects(() => done, CommandFailure);
  assertEquals(failure.code, ExitCode.RESET);
});

Deno.test("netcat() reports input that cannot be read", async () => {
  const { conn } = connect();
  const io = streams([], "open");
  const read = () => Promise.reject(new Error("input/output error"));
  const broken = { ...io, input: { ...io.input, read } };
  await assertRejects(() => netcat(conn, broken), Error, "input/output error");
});

Deno.test("netcat() reports a loss by its exit code", async () => {
  const [ours, theirs] = MemoryConduit.pair();
  const conn = new TunnelConn(ours);
  new ConduitProbe(theirs);
  const done = netcat(conn, streams([], "open"));
  ours.lose("link lost");
  const failure = await assertRejects(
    () => done,
    CommandFailure,
    "The connection was lost: link lost",
  );
  assertEquals(failure.code, ExitCode.LOST);
});
