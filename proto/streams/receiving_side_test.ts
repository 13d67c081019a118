import { assert, assertEquals } from "@std/assert";
import { engineAndPeer } from "../../tests/support/memory/engine_pair.ts";
import { requestFields } from "../../tests/support/watch/stream_log.ts";
import { encodeFrame } from "../../tests/support/peers/encoded_frame.ts";
import { PingPurpose } from "./liveness.ts";
import { LOCAL_SETTINGS_DEFAULT } from "./settings.ts";
import { PROBE_PAUSE_MS } from "./window_tuner.ts";

const FRAME_BYTES = 16_384;
const MIB = 1024 * 1024;

/**
 * A peer that sends whatever the connection's window admits, on a stream whose
 * own window never stops it, and answers PINGs after `rttMs`.
 *
 * @returns What it may have in flight in the end.
 */
function windowAfter(rounds: number, rttMs: (round: number) => number): number {
  const { engine, peer } = engineAndPeer("server", {
    settings: { initialWindowSize: 0x4000_0000 },
  });
  const { connectionWindow } = LOCAL_SETTINGS_DEFAULT;
  let mayCome = connectionWindow;
  let pings = 0;
  const listen = () => {
    peer.listen();
    let asked = 0;
    for (const line of peer.received.splice(0)) {
      const [type, id, bytes] = line.split(" ");
      if (type === "PING") asked++;
      if (type === "WINDOW_UPDATE" && id === "0") mayCome += Number(bytes);
    }
    return asked;
  };
  const frame = encodeFrame({
    type: "DATA",
    streamId: 1,
    endStream: false,
    data: new Uint8Array(FRAME_BYTES),
    isFirst: true,
    flowBytes: FRAME_BYTES,
    paddingBytes: 0,
  });
  peer.headers(1, requestFields());
  for (let round = 0; round < rounds; round++) {
    engine.clock.advance(PROBE_PAUSE_MS);
    let asked = 0;
    // A round begins with half of the window; what its credit admits within a
    // round trip is a window's worth more.
    let left = mayCome * 1.5;
    for (; left > 0 && mayCome >= FRAME_BYTES; left -= FRAME_BYTES) {
      peer.sendBytes(frame);
      mayCome -= FRAME_BYTES;
      asked += listen();
    }
    engine.accepted[0]!.events.length = 0;
    engine.clock.advance(rttMs(round));
    for (; asked > 0; asked--) {
      const opaque = new Uint8Array(8);
      opaque[3] = PingPurpose.probe;
      opaque[7] = ++pings;
      peer.send({ type: "PING", ack: true, opaque });
    }
    listen();
    assertEquals(engine.ends, []);
  }
  return mayCome;
}

Deno.test("the connection's window starts small and follows what a round trip moves", () => {
  const { connectionWindow, connectionWindowMax } = LOCAL_SETTINGS_DEFAULT;
  assertEquals(connectionWindow, MIB);
  assert(windowAfter(2, () => 50) > connectionWindow);
  const grown = windowAfter(12, () => 50);
  assert(grown > connectionWindowMax / 2, `${grown}`);
  assert(grown <= connectionWindowMax, `${grown}`);
});

Deno.test("it stops where round trips get longer", () => {
  const grown = windowAfter(12, (round) => round < 2 ? 50 : 100);
  assert(grown <= 4 * MIB, `${grown}`);
});
