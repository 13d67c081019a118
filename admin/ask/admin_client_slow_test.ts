import { assertEquals, assertRejects } from "@std/assert";
import { PrintedLines } from "../../tests/support/peers/printed_lines.ts";
import { AdminClient, AdminError } from "./admin_client.ts";

const TOKEN = "ab".repeat(32);

/** Listens on a port of loopback as another user, and prints what it is sent. */
const STRANGER = `
import os, socket, sys
os.setgid(65534); os.setuid(65534)
s = socket.socket(); s.bind(("127.0.0.1", 0)); s.listen()
print(s.getsockname()[1], flush=True)
c, _ = s.accept(); c.settimeout(60)
print("sent", c.recv(9999), flush=True)
`;

Deno.test({
  name: "a token is shown to no other user who took the port",
  ignore: Deno.build.os !== "linux" || Deno.uid() !== 0,
  async fn() {
    const tokenFile = await Deno.makeTempFile();
    await using stranger = new Deno.Command("python3", {
      args: ["-c", STRANGER],
      stdout: "piped",
    }).spawn();
    await using lines = new PrintedLines(stranger.stdout);
    const port = Number(await lines.next());
    const to = { kind: "tcp", host: "127.0.0.1", port, token: TOKEN } as const;
    await assertRejects(
      () => new AdminClient("server", { ...to, tokenFile }).get("/v1/status"),
      AdminError,
      "user 65534 listens there, who is neither you nor the owner of " +
        tokenFile,
    );
    assertEquals(await lines.next(), "sent b''");
    await Deno.remove(tokenFile);
  },
});
