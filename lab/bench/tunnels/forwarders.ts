/**
 * frp and chisel: single programs that forward a port, encrypted as they come.
 *
 * @module
 */

import { Child } from "../../../tests/support/program/child.ts";
import { findPeer } from "../../peers/peers.ts";
import { freePort } from "../../../tests/support/program/ports.ts";
import type { Site, Tunnel } from "./site.ts";

/** frp with its defaults: one TLS connection that carries all others. */
export async function startFrp(site: Site): Promise<Tunnel> {
  const { workspace, serverHost } = site;
  const [linkPort, port] = [freePort(), freePort()];
  const target = splitAddress(site.target);
  const serverFile = workspace.path("frps.toml");
  await Deno.writeTextFile(
    serverFile,
    `bindAddr = "${serverHost}"\nbindPort = ${linkPort}\n` +
      `proxyBindAddr = "${serverHost}"\nlog.level = "error"\n`,
  );
  const agentFile = workspace.path("frpc.toml");
  // Without loginFailExit it gives up when the server is not there yet.
  await Deno.writeTextFile(
    agentFile,
    `serverAddr = "${serverHost}"\nserverPort = ${linkPort}\n` +
      `loginFailExit = false\nlog.level = "error"\n` +
      `[[proxies]]\nname = "bench"\ntype = "tcp"\n` +
      `localIP = "${target.host}"\nlocalPort = ${target.port}\n` +
      `remotePort = ${port}\n`,
  );
  const server = new Child({
    name: "frps",
    command: [...site.serverSide, await findPeer("frps"), "-c", serverFile],
    logFile: workspace.path("frps.log"),
  });
  const agent = new Child({
    name: "frpc",
    command: [...site.agentSide, await findPeer("frpc"), "-c", agentFile],
    logFile: workspace.path("frpc.log"),
  });
  return forwarded(`${serverHost}:${port}`, [server, agent]);
}

/** chisel: SSH inside a WebSocket. */
export async function startChisel(site: Site): Promise<Tunnel> {
  const { workspace, serverHost } = site;
  const [linkPort, port] = [freePort(), freePort()];
  const chisel = await findPeer("chisel");
  const server = new Child({
    name: "chisel server",
    command: [
      ...[...site.serverSide, chisel, "server"],
      ...[`--host=${serverHost}`, `--port=${linkPort}`, "--reverse"],
    ],
    logFile: workspace.path("chisel-server.log"),
  });
  const agent = new Child({
    name: "chisel client",
    command: [
      ...[...site.agentSide, chisel, "client", "--max-retry-interval=1s"],
      `http://${serverHost}:${linkPort}`,
      `R:${serverHost}:${port}:${site.target}`,
    ],
    logFile: workspace.path("chisel-client.log"),
  });
  return forwarded(`${serverHost}:${port}`, [server, agent]);
}

/** A tunnel whose way in is a port that it forwards. */
export function forwarded(address: string, pieces: readonly Child[]): Tunnel {
  return {
    flags: [`-addr=${address}`],
    generator: "loadgen",
    route: "a forwarded TCP port",
    pieces,
    stop: async () => {
      await Promise.all(pieces.map((piece) => piece.stop()));
    },
  };
}

export function splitAddress(address: string): { host: string; port: number } {
  const colon = address.lastIndexOf(":");
  return {
    host: address.slice(0, colon),
    port: Number(address.slice(colon + 1)),
  };
}
