import { assertEquals } from "@std/assert";
import {
  ConduitProbe,
  settled,
} from "../../tests/support/memory/conduit_probe.ts";
import { ConnectionPair } from "../../tests/support/memory/connection_pair.ts";
import { FakeTimers } from "../../tests/support/memory/fake_timers.ts";
import { MemoryConduit } from "../../tests/support/memory/memory_conduit.ts";
import { ScriptedCaller } from "../../tests/support/watch/packet_script.ts";
import { GrpcRouter } from "../grpc/server.ts";
import { CAPABILITIES_FIELD, PROXY_PATH } from "./capabilities.ts";
import type { DialAnswer } from "./dial_handler.ts";
import { proxyService } from "./proxy_service.ts";

/** A callee whose dials take early data, and a caller of ours. */
async function dialing(protocol: "tcp" | "udp", roomBytes: number) {
  const timers = new FakeTimers();
  const scene = { roomBytes, early: [] as string[] };
  let answer: DialAnswer | undefined;
  const method = proxyService({
    timers,
    onDial(_target, given) {
      answer = given;
      return {
        cancel() {},
        sendEarly(bytes) {
          if (bytes.length > scene.roomBytes) return 0;
          scene.roomBytes -= bytes.length;
          scene.early.push(new TextDecoder().decode(bytes));
          return bytes.length;
        },
      };
    },
  });
  const router = new GrpcRouter({ timers, methods: { [PROXY_PATH]: method } });
  const pair = new ConnectionPair({
    clock: timers,
    onStream: (stream) => router.accept(stream),
  });
  const caller = new ScriptedCaller(pair.client, PROXY_PATH, {
    [CAPABILITIES_FIELD]: "half-close",
  });
  const address = "10.0.0.1:443";
  caller.say({ type: "DIAL_REQ", protocol, address, random: 1 });
  await settled();
  /** Answers the dial. @returns The target. */
  const connect = async () => {
    const [near, far] = MemoryConduit.pair({ datagrams: protocol === "udp" });
    const target = new ConduitProbe(far);
    answer!.connected(near);
    await settled();
    return target;
  };
  return { scene, caller, connect };
}

Deno.test("early data that missed the dial follows it, and the rest stays in order", async () => {
  const { scene, caller, connect } = await dialing("tcp", 8);
  for (const text of ["one ", "two ", "three ", "four"]) {
    caller.data(0, text);
    await settled();
  }
  scene.roomBytes = 100;
  caller.data(0, " five");
  await settled();
  assertEquals(scene.early, ["one ", "two "]);
  assertEquals((await connect()).text, "three four five");
});

Deno.test("datagrams that missed the dial keep their borders", async () => {
  const { scene, caller, connect } = await dialing("udp", 100_000);
  const inPieces = "x".repeat(40_000);
  for (const text of ["one", inPieces, "two"]) {
    caller.data(0, text);
    await settled();
  }
  const { chunks } = await connect();
  assertEquals(scene.early, ["one"], "one in pieces waits, and what follows");
  assertEquals(chunks.map(({ length }) => length), [40_000, 3]);
});
