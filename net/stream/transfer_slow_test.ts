import { assert, assertEquals } from "@std/assert";
import { transfer } from "../../proto/transfer/transfer.ts";
import { Prng } from "../../tests/support/memory/prng.ts";
import {
  readToEnd,
  tcpPair,
  writeAll,
} from "../../tests/support/peers/sockets.ts";
import { denoStream } from "./platform_stream.ts";
import { conduitOf } from "./stream_conduit.ts";

Deno.test("8 MiB go both ways through two sockets and the transfer loop", async () => {
  const [left, leftConn] = await tcpPair();
  const [right, rightConn] = await tcpPair();
  const moving = transfer(
    conduitOf(denoStream(leftConn)),
    conduitOf(denoStream(rightConn)),
  );
  const up = new Prng(11).bytes(8 << 20);
  const down = new Prng(12).bytes(8 << 20);
  const [atLeft, atRight] = await Promise.all([
    readToEnd(left),
    readToEnd(right),
    writeAll(left, up).then(() => left.closeWrite()),
    writeAll(right, down).then(() => right.closeWrite()),
  ]);
  await moving;
  assertEquals([atLeft.length, atRight.length], [down.length, up.length]);
  assert(atLeft.every((byte, index) => byte === down[index]));
  assert(atRight.every((byte, index) => byte === up[index]));
  left.close();
  right.close();
});

Deno.test({
  name: "a TCP reset on one side is a TCP reset on the other",
  ignore: Deno.build.os !== "linux",
  fn: async () => {
    const [left, leftConn] = await tcpPair();
    const [right, rightConn] = await tcpPair();
    const moving = transfer(
      conduitOf(denoStream(leftConn)),
      conduitOf(denoStream(rightConn)),
    );
    denoStream(left).reset();
    const seen = await right.read(new Uint8Array(1)).catch((error) => error);
    assert(seen instanceof Deno.errors.ConnectionReset, String(seen));
    await moving;
    right.close();
  },
});
