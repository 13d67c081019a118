import { assert, assertEquals } from "@std/assert";
import { openLibc } from "../libc/libc.ts";
import { PacketListener, type PacketSocket } from "./packet_socket.ts";
import { RunningProcess } from "./running_process.ts";

const ESCAPE = "\x1b]0;gone\x07";

Deno.test({
  name: "what a process says of itself does nothing to a terminal",
  ignore: openLibc() === undefined,
  fn: async () => {
    const address = `@tunnel-liar-${Deno.pid}`;
    const answer = async (socket: PacketSocket) => {
      await socket.receive();
      socket.send({
        ...{ yes: true, command: "server" + ESCAPE },
        version: ESCAPE.repeat(100),
      });
      await socket.receive();
      socket.send({ yes: true, pid: 1 });
      const words = `one${ESCAPE}\n${"two".repeat(2_000)}`;
      socket.send({ failed: "it" + ESCAPE, words });
    };
    const listener = PacketListener.open(address, (socket) => {
      answer(socket).then(() => socket.close());
    })!;
    const process = (await RunningProcess.find(address))!;
    assertEquals(process.command, "server\\u001b]0;gone\\u0007");
    assert(process.version.length < 200);
    const outcome = await process.upgrade("/bin/true", 1_000);
    assert(outcome.kind === "failed");
    assertEquals(outcome.reason, "it\\u001b]0;gone\\u0007");
    assert(outcome.words.length <= 2_000 && outcome.words.endsWith("two"));
    process.close();
    listener.close();
  },
});
