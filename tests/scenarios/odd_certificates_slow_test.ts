/**
 * Whatever certificate somebody shows to a TLS port of a server, signed by
 * nobody or by an authority that is trusted there, it costs that connection: the
 * process lives, and nothing about it was unforeseen.
 *
 * @module
 */

import { Processes, ServerProcess } from "../support/rigs/processes.ts";
import { assertEquals } from "@std/assert";
import tls from "node:tls";
import { openLibssl } from "../../net/tls/openssl/library.ts";
import { freePort } from "../support/program/ports.ts";
import { Workspace } from "../support/program/workspace.ts";
import {
  oddAuthority,
  type OddCertificate,
  oddCertificates,
} from "../support/certificates/odd_certificates.ts";

/** This platform's own client refuses to show these. */
const UNSHOWN_MAX = 4;

const PORTS = ["agent", "frontend", "kubelet"] as const;

for (const choice of ["openssl", "platform"]) {
  Deno.test({
    name: `odd certificates end no process that speaks TLS by ${choice}`,
    ignore: choice === "openssl" && openLibssl() === undefined,
    fn: async () => {
      const authority = oddAuthority();
      await using programs = new Processes(await Workspace.make());
      const { server, ports } = await start(programs, choice, authority.cert);
      const all = [
        ...oddCertificates(),
        ...oddCertificates(authority),
      ];
      for (const [index, port] of PORTS.entries()) {
        const shown = await Promise.all(all.map((odd, number) =>
          show(odd, {
            port: ports[port],
            // One source that is refused so often would be slowed down.
            localAddress: `127.0.${index + 1}.${number + 1}`,
          })
        ));
        const unshown = shown.filter((isShown) => !isShown).length;
        assertEquals(unshown <= 2 * UNSHOWN_MAX, true, `${unshown} unshown`);
        assertEquals(
          server.child.hasEnded,
          false,
          `${port}: it has ended`,
        );
      }
      const text = await (await fetch(`${server.healthUrl}/metrics`)).text();
      assertEquals(
        text.split("\n").filter((line) => line.includes("internal_errors")),
        [],
        await server.child.logTail(),
      );
    },
  });
}

async function start(programs: Processes, choice: string, trusted: string) {
  const { ca, server: pair, client } = programs.workspace.certificates;
  const callers = programs.workspace.path("callers.crt");
  await Deno.writeTextFile(callers, await Deno.readTextFile(ca) + trusted);
  const [frontend, kubelet] = [freePort(), freePort()];
  const server = new ServerProcess(programs.workspace, {
    flags: [
      ...["server", "cluster"].flatMap((side) => [
        `--${side}-cert=${pair.cert}`,
        `--${side}-key=${pair.key}`,
        `--${side}-ca-cert=${callers}`,
      ]),
      ...[`--server-port=${frontend}`, "--server-bind-address=127.0.0.1"],
      ...[`--kubelet-port=${kubelet}`, "--kubelet-bind-address=127.0.0.1"],
      `--kubelet-client-certificate=${client.cert}`,
      `--kubelet-client-key=${client.key}`,
      ...["--kubelet-insecure-skip-verify", "--admin-port=0"],
    ],
  });
  programs.servers.push(server);
  server.prefix = ["env", `TUNNEL_TLS=${choice}`];
  await server.start();
  const ports = { agent: server.agentPort, frontend, kubelet };
  return { server, ports };
}

/**
 * Shows `odd`, says something that no port takes for a request, and waits until
 * it is hung up on.
 *
 * @returns Whether it could be shown at all.
 */
function show(
  { cert, key }: OddCertificate,
  at: { readonly port: number; readonly localAddress: string },
): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = tls.connect({
      ...at,
      host: "127.0.0.1",
      cert,
      key,
      rejectUnauthorized: false,
      ca: [],
      ALPNProtocols: ["h2", "http/1.1"],
    } as tls.ConnectionOptions);
    let isShown = true;
    socket.on("error", (error) => {
      if (/unsupported protocol/.test(error.message)) isShown = false;
    });
    socket.on("secureConnect", () => socket.end("? ? ?\r\n\r\n"));
    socket.on("close", () => resolve(isShown));
    socket.resume();
  });
}
