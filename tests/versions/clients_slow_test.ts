/** `dial` and `forward` of one version before a server of another. */

import { assertEquals } from "@std/assert";
import { Child } from "../support/program/child.ts";
import { freePort } from "../support/program/ports.ts";
import { sameBytes } from "../../proto/bytes/byte_arrays.ts";
import { askEcho } from "../support/peers/steady_requests.ts";
import { ProxyRig } from "../support/rigs/proxy_rig.ts";
import { TunnelProcesses } from "../support/rigs/tunnel_processes.ts";
import { commandOfVersion, PAIRS } from "./versions.ts";

/** What is sent and comes back; no two parts of it are the same. */
const TEXT = new TextEncoder().encode(
  Array.from({ length: 400_000 }, (_, index) => `${index} `).join(""),
);

for (const [server, client] of PAIRS) {
  Deno.test(`versions: a server that is ${server}, dial and forward that are ${client}`, async () => {
    await using tunnel = await TunnelProcesses.start({ server, agent: server });
    await using targets = new ProxyRig();
    const target = `127.0.0.1:${targets.echo()}`;
    const { frontend } = tunnel.server;
    if (frontend.transport !== "uds") throw new TypeError("Expected a socket");
    const at = `--server=unix:${frontend.path}`;

    const [program, ...args] = await commandOfVersion(
      client,
      ...["dial", target, at],
    );
    const dial = new Deno.Command(program!, {
      ...{ args, stdin: "piped", stdout: "piped", stderr: "piped" },
    }).spawn();
    const writer = dial.stdin.getWriter();
    const [{ stdout, stderr }] = await Promise.all([
      dial.output(),
      writer.write(TEXT).then(() => writer.close(), () => {}),
    ]);
    assertEquals(new TextDecoder().decode(stderr), "");
    assertEquals(sameBytes(stdout, TEXT), true, `${stdout.length} came back`);

    const port = freePort();
    const forward = new Child({
      name: "forward",
      command: await commandOfVersion(
        client,
        ...["forward", `127.0.0.1:${port}:${target}`, at],
      ),
      logFile: tunnel.workspace.path("forward.log"),
    });
    try {
      await forward.untilPrinted(/->/);
      for (let count = 0; count < 20; count++) await askEcho(port)();
    } finally {
      await forward.stop("SIGKILL");
    }
  });
}
