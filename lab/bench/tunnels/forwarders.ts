/**
 * Programs that forward a port: frp and rathole, encrypted as they come,
 * and nginx, which shows what processes that copy bytes reach without encryption.
 *
 * @module
 */

import { Child } from "../../../tests/support/program/child.ts";
import { findDebianProgram } from "../../../tests/support/program/debian.ts";
import { runOrMiss } from "../../../tests/support/program/missing.ts";
import { findRathole } from "../../../tests/support/program/peer_packages.ts";
import { findPeer } from "../../../tests/support/program/peers.ts";
import { freePort } from "../../../tests/support/program/ports.ts";
import type { Workspace } from "../../../tests/support/program/workspace.ts";
import type { Site, SiteConfig, Tunnel } from "./start_tunnel.ts";

/** frp with its defaults: one TLS connection that carries all others. */
export async function startFrp(
  { workspace, serverHost: host, target, serverSide, agentSide }: Site,
  { protocol: type = "tcp" }: SiteConfig,
): Promise<Tunnel> {
  const [linkPort, port] = [freePort(), freePort()];
  // Who waits for datagrams reads when the pair is ready.
  const level = `log.level = "${type === "tcp" ? "error" : "info"}"\n`;
  const [targetHost, targetPort] = target.split(":");
  const start = async (
    program: "frps" | "frpc",
    prefix: readonly string[],
    text: string,
  ) => {
    const file = workspace.path(`${program}.toml`);
    await Deno.writeTextFile(file, text);
    return new Child({
      name: program,
      command: [...prefix, await findPeer(program), "-c", file],
      logFile: workspace.path(`${program}.log`),
    });
  };
  const server = await start(
    "frps",
    serverSide,
    `bindAddr = "${host}"\nbindPort = ${linkPort}\n` +
      `proxyBindAddr = "${host}"\n${level}`,
  );
  // Without loginFailExit it gives up when the server is not there yet.
  const client = await start(
    "frpc",
    agentSide,
    `serverAddr = "${host}"\nserverPort = ${linkPort}\n` +
      `loginFailExit = false\n${level}` +
      `[[proxies]]\nname = "bench"\ntype = "${type}"\n` +
      `localIP = "${targetHost}"\nlocalPort = ${targetPort}\n` +
      `remotePort = ${port}\n`,
  );
  if (type === "udp") {
    await server.untilPrinted(/started successfully/);
    await client.untilPrinted(/start proxy success/);
  }
  return forwarded(`${host}:${port}`, [server, client]);
}

/** rathole: one TLS connection for each of a caller's, eight of them ready. */
export async function startRathole(site: Site): Promise<Tunnel> {
  const { workspace, serverHost: host, target, serverSide, agentSide } = site;
  const { ca, server } = workspace.certificates;
  const [linkPort, port] = [freePort(), freePort()];
  const [program, store] = [await findRathole(), workspace.path("rathole.pfx")];
  const password = "bench";
  await runOrMiss("rathole", [
    ...["openssl", "pkcs12", "-export", "-in", server.cert],
    ...["-inkey", server.key, "-passout", `pass:${password}`, "-out", store],
  ]);
  const start = async (
    end: "server" | "client",
    prefix: readonly string[],
    address: string,
    tls: string,
    service: string,
  ) => {
    const file = workspace.path(`rathole-${end}.toml`);
    await Deno.writeTextFile(
      file,
      `[${end}]\n${address}\ndefault_token = "bench"\n` +
        `[${end}.transport]\ntype = "tls"\n` +
        `[${end}.transport.tls]\n${tls}\n` +
        `[${end}.services.bench]\n${service}\n`,
    );
    return new Child({
      name: `rathole ${end}`,
      command: [...prefix, program, file],
      logFile: workspace.path(`rathole-${end}.log`),
    });
  };
  return forwarded(`${host}:${port}`, [
    await start(
      "server",
      serverSide,
      `bind_addr = "${host}:${linkPort}"`,
      `pkcs12 = "${store}"\npkcs12_password = "${password}"`,
      `bind_addr = "${host}:${port}"`,
    ),
    await start(
      "client",
      agentSide,
      `remote_addr = "${host}:${linkPort}"`,
      `trusted_root = "${ca}"\nhostname = "localhost"`,
      `local_addr = "${target}"`,
    ),
  ]);
}

/** A tunnel whose way in is a port that it forwards. */
export function forwarded(address: string, pieces: readonly Child[]): Tunnel {
  return {
    flags: [`-addr=${address}`],
    generator: "loadgen",
    pieces,
    stop: async () => {
      await Promise.all(pieces.map((piece) => piece.stop()));
    },
  };
}

const NGINX_CONNECTIONS_MAX = 32_768;

/** Two nginx one behind the other. */
export async function startNginx(site: Site): Promise<Tunnel> {
  if (site.agentSide.join() !== site.serverSide.join()) {
    throw new TypeError("nginx dials its second hop, so both share a place");
  }
  const outer = `${site.serverHost}:${freePort()}`;
  const inner = `${site.serverHost}:${freePort()}`;
  const { workspace, serverSide: prefix } = site;
  const hop = (listen: string, onward: string) =>
    startNginxHop(workspace, { listen, targets: [onward], prefix });
  const hops = [await hop(outer, inner), await hop(inner, site.target)];
  return forwarded(outer, hops);
}

/** One process. */
export interface NginxHop {
  /** `host:port`. */
  readonly listen: string;
  /** `host:port` each, used in turns. */
  readonly targets: readonly string[];
  readonly prefix?: readonly string[];
}

/**
 * Starts one that gives up a dial, and leaves a target out, as our service
 * proxy does by default.
 */
export async function startNginxHop(
  workspace: Workspace,
  { listen, targets, prefix = [] }: NginxHop,
): Promise<Child> {
  const nginx = await findDebianProgram("nginx");
  const folder = workspace.path("nginx");
  await Deno.mkdir(folder);
  const module = `${nginx.root}/usr/lib/nginx/modules/ngx_stream_module.so`;
  const isDynamic = await isThere(module);
  const servers = targets
    .map((target) => `server ${target} max_fails=3 fail_timeout=10s;`);
  const configuration = [
    ...(isDynamic ? [`load_module ${module};`] : []),
    // As root it would else become a user who may not read this folder.
    ...(Deno.uid() === 0 ? ["user root;"] : []),
    "daemon off;",
    `pid ${folder}/pid;`,
    `error_log ${folder}/error.log error;`,
    `worker_rlimit_nofile ${NGINX_CONNECTIONS_MAX * 2};`,
    `events { worker_connections ${NGINX_CONNECTIONS_MAX}; }`,
    `stream { upstream targets { ${servers.join(" ")} }`,
    `server { listen ${listen};`,
    "proxy_connect_timeout 250ms; proxy_timeout 1h;",
    "proxy_pass targets; } }",
    "",
  ].join("\n");
  await Deno.writeTextFile(`${folder}/nginx.conf`, configuration);
  return new Child({
    name: `nginx at ${listen}`,
    command: [
      ...[...prefix, nginx.path],
      ...["-p", folder, "-c", `${folder}/nginx.conf`],
      ...["-e", `${folder}/error.log`],
    ],
    logFile: workspace.path("nginx.log"),
  });
}

async function isThere(path: string): Promise<boolean> {
  try {
    return (await Deno.stat(path)).isFile;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return false;
    throw error;
  }
}
