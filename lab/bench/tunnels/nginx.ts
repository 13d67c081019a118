/**
 * nginx with `stream`: two one behind the other are what any two processes that
 * copy bytes can reach without encryption; one alone is a service proxy.
 *
 * @module
 */

import { Child } from "../../../tests/support/program/child.ts";
import { findDebianProgram } from "../../peers/debian.ts";
import { freePort } from "../../../tests/support/program/ports.ts";
import type { Workspace } from "../../../tests/support/program/workspace.ts";
import { forwarded } from "./forwarders.ts";
import type { Site, Tunnel } from "./site.ts";

const CONNECTIONS_MAX = 32_768;

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
  readonly protocol?: "tcp" | "udp";
  readonly prefix?: readonly string[];
}

/**
 * Starts one that gives up a dial, and leaves a target out, as our service
 * proxy does by default.
 */
export async function startNginxHop(
  workspace: Workspace,
  { listen, targets, protocol = "tcp", prefix = [] }: NginxHop,
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
    `worker_rlimit_nofile ${CONNECTIONS_MAX * 2};`,
    `events { worker_connections ${CONNECTIONS_MAX}; }`,
    `stream { upstream targets { ${servers.join(" ")} }`,
    `server { listen ${listen}${protocol === "udp" ? " udp" : ""};`,
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
