import { assert, assertEquals } from "@std/assert";
import { Engine } from "../support/memory/engine_pair.ts";
import type { Frame } from "../../proto/frames/frame.ts";
import { FrameDecoder } from "../../proto/frames/frame_decoder.ts";
import { errorCodeName, WireError } from "../../proto/frames/wire_error.ts";
import { GrpcRouter } from "../../proto/grpc/server.ts";
import { NO_EVENTS } from "../../proto/grpc/server_call.ts";
import { ExcessError } from "../../proto/streams/abuse_limits.ts";
import { HTTP2_ATTACKS, type Http2Attack } from "./http2_attacks.ts";

/** A method whose call waits for a message that never comes. */
const PATH = "/wait";

/** Bytes that an attack may have said before it is ended, at the very most. */
const BYTES_MAX = 4 * 1024 * 1024;

/** What is waiting for the attacker, at most: the limit, and one round. */
const OUTPUT_BYTES_MAX = 2.5 * 1024 * 1024;

/** Attacks one engine in memory until it has had enough. */
function attack(one: Http2Attack) {
  const server = new Engine("server");
  const router = new GrpcRouter({
    timers: server.clock,
    methods: { [PATH]: () => NO_EVENTS },
  });
  server.serve = (stream) => router.accept(stream);
  const { connection: engine, ends } = server;
  const decoder = new FrameDecoder(0xff_ffff);
  const received: Frame[] = [];
  let unread = 0;
  const listen = () => {
    for (let batch; (batch = engine.takeOutput()) !== undefined;) {
      unread += batch.length;
      decoder.push(batch.slice());
      for (let frame; (frame = decoder.next()) !== undefined;) {
        received.push(frame);
      }
      engine.outputWritten();
    }
  };
  let said = 0;
  const say = (bytes: Uint8Array) => {
    said += bytes.length;
    engine.receive(bytes.slice());
    if (!one.isDeaf) listen();
  };
  say(one.opening(PATH));
  let rounds = 0;
  while (ends.length === 0 && said < BYTES_MAX) {
    say(one.again(rounds++, PATH));
  }
  listen();
  return { end: ends[0], received, said, unread };
}

for (const one of HTTP2_ATTACKS) {
  Deno.test(`${one.name} (${one.known}) ends in ${one.code}`, () => {
    const { end, received, said, unread } = attack(one);
    assert(end !== undefined, `still open after ${said} bytes`);
    assert(end.error instanceof WireError, end.reason);
    assertEquals(errorCodeName(end.code), one.code, end.reason);
    const excess = end.error instanceof ExcessError ? end.error.excess : "";
    assertEquals(excess, one.excess, end.reason);
    // The attacker is told, last of all.
    const last = received.at(-1);
    assert(last?.type === "GOAWAY", last?.type);
    assertEquals(errorCodeName(last.errorCode), one.code);
    assert(unread < OUTPUT_BYTES_MAX, `${unread} bytes of answers`);
  });
}
