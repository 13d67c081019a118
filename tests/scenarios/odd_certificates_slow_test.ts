/**
 * Whatever certificate somebody shows to a TLS port of a server, signed by
 * nobody or by an authority that is trusted there, it costs that connection: the
 * process lives, and nothing about it was unforeseen.
 *
 * @module
 */

import { assertEquals } from "@std/assert";
import tls from "node:tls";
import { openLibssl } from "../../net/tls/openssl/library.ts";
import { Child } from "../support/program/child.ts";
import { freePort } from "../support/program/ports.ts";
import { ourCommand } from "../support/program/tunnel.ts";
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
      const workspace = await Workspace.make();
      const { server, ports, metrics } = await start(workspace, {
        choice,
        trusted: authority.cert,
      });
      try {
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
          assertEquals(server.hasEnded, false, `${port}: it has ended`);
        }
        const answer = await fetch(metrics);
        const text = await answer.text();
        assertEquals(
          text.split("\n").filter((line) => line.includes("internal_errors")),
          [],
          await server.logTail(),
        );
      } finally {
        await server.stop("SIGKILL");
        await workspace.remove();
      }
    },
  });
}

async function start(
  workspace: Workspace,
  { choice, trusted }: { readonly choice: string; readonly trusted: string },
) {
  const { ca, server: pair, client } = workspace.certificates;
  const callers = workspace.path("callers.crt");
  await Deno.writeTextFile(callers, await Deno.readTextFile(ca) + trusted);
  const ports = {
    agent: freePort(),
    frontend: freePort(),
    kubelet: freePort(),
  };
  const [admin, health] = [freePort(), freePort()];
  const server = new Child({
    name: "server",
    command: [
      ...ourCommand("server"),
      "--v=2",
      `--cluster-cert=${pair.cert}`,
      `--cluster-key=${pair.key}`,
      `--cluster-ca-cert=${callers}`,
      `--agent-port=${ports.agent}`,
      "--agent-bind-address=127.0.0.1",
      `--server-cert=${pair.cert}`,
      `--server-key=${pair.key}`,
      `--server-ca-cert=${callers}`,
      `--server-port=${ports.frontend}`,
      "--server-bind-address=127.0.0.1",
      `--kubelet-port=${ports.kubelet}`,
      "--kubelet-bind-address=127.0.0.1",
      `--kubelet-client-certificate=${client.cert}`,
      `--kubelet-client-key=${client.key}`,
      "--kubelet-insecure-skip-verify",
      `--admin-port=${admin}`,
      `--health-port=${health}`,
      "--health-bind-address=127.0.0.1",
    ],
    logFile: workspace.path("server.log"),
    env: { TUNNEL_TLS: choice },
  });
  await server.untilReady(`http://127.0.0.1:${health}/healthz`);
  return { server, ports, metrics: `http://127.0.0.1:${admin}/metrics` };
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
