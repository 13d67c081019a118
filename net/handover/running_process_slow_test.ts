import { assertEquals, assertRejects } from "@std/assert";
import { PrintedLines } from "../../tests/support/peers/printed_lines.ts";
import { openLibc } from "../libc/libc.ts";
import { ProcessRefusal, RunningProcess } from "./running_process.ts";

/** Takes a name as another user, and says nothing to who connects. */
const SQUATTER = `
import os, socket, sys
os.setgid(65534); os.setuid(65534)
s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
s.bind("\\0" + sys.argv[1]); s.listen()
print("ready", flush=True)
c, _ = s.accept(); c.recv(9999); c.close()
`;

Deno.test({
  name: "a name that another user has taken is told as theirs",
  ignore: openLibc() === undefined || Deno.uid() !== 0,
  fn: async () => {
    const name = `tunnel-squatted-${Deno.pid}`;
    await using squatter = new Deno.Command("python3", {
      args: ["-c", SQUATTER, name],
      stdout: "piped",
    }).spawn();
    await using lines = new PrintedLines(squatter.stdout);
    assertEquals(await lines.next(), "ready");
    await assertRejects(
      () => RunningProcess.find(`@${name}`),
      ProcessRefusal,
      `process ${squatter.pid} of user 65534 has ended the conversation; if ` +
        "the program runs as another user, its name is taken",
    );
  },
});
