import { assertEquals } from "@std/assert";
import { socketStore } from "./socket_store.ts";
import { listenUnix } from "../listen/listeners.ts";
import { RecordedErrors } from "../../tests/support/watch/recorded_errors.ts";
import { PathAcceptor } from "./path_acceptor.ts";

const PROBLEM = "there is no descriptor left";

Deno.test({
  name: "a connection that cannot be passed on is closed",
  ignore: socketStore() === undefined,
  fn: async () => {
    using recorded = new RecordedErrors();
    const path = await Deno.makeTempFile();
    await Deno.remove(path);
    const listener = await listenUnix(path, {
      onConnection: (stream) => stream.close(),
      onProblem() {},
    });
    const key = `unix ${path}`;
    const [socket] = [...socketStore()!.listening]
      .flatMap(([socket, itsKey]) => itsKey === key ? [socket] : []);
    socket!.hold!();
    const acceptor = new PathAcceptor(key, socket!.descriptor);
    acceptor.add({
      isSilent: false,
      pass() {
        throw new Error(PROBLEM);
      },
    });
    const client = await Deno.connect({ transport: "unix", path });
    assertEquals(await client.read(new Uint8Array(1)), null);
    assertEquals(recorded.messages, [PROBLEM]);
    client.close();
    acceptor.close();
    listener.close();
  },
});
