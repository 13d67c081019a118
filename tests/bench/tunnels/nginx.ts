/**
 * Two nginx with `stream` one behind the other: what any two processes that
 * copy octets can reach without encryption.
 *
 * @module
 */

import { Child } from "../../peers/child.ts";
import { findDebianProgram } from "../../peers/debian.ts";
import { freePort } from "../../peers/ports.ts";
import { forwarded } from "./forwarders.ts";
import type { Site, Tunnel } from "./site.ts";

const CONNECTIONS_MAX = 32_768;

export async function startNginx(site: Site): Promise<Tunnel> {
  if (site.agentSide.join() !== site.serverSide.join()) {
    throw new TypeError("nginx dials its second hop, so both share a place");
  }
  const outer = `${site.serverHost}:${freePort()}`;
  const inner = `${site.serverHost}:${freePort()}`;
  const hops = [
    await startHop(site, outer, inner),
    await startHop(site, inner, site.target),
  ];
  return forwarded(outer, hops);
}

async function startHop(
  site: Site,
  listen: string,
  onward: string,
): Promise<Child> {
  const { workspace } = site;
  const nginx = await findDebianProgram("nginx");
  const folder = workspace.path("nginx");
  await Deno.mkdir(folder);
  const module = `${nginx.root}/usr/lib/nginx/modules/ngx_stream_module.so`;
  const isDynamic = await isThere(module);
  const configuration = [
    ...(isDynamic ? [`load_module ${module};`] : []),
    // As root it would else become a user who may not read this folder.
    ...(Deno.uid() === 0 ? ["user root;"] : []),
    "daemon off;",
    `pid ${folder}/pid;`,
    `error_log ${folder}/error.log error;`,
    `worker_rlimit_nofile ${CONNECTIONS_MAX * 2};`,
    `events { worker_connections ${CONNECTIONS_MAX}; }`,
    `stream { server { listen ${listen}; proxy_pass ${onward}; } }`,
    "",
  ].join("\n");
  await Deno.writeTextFile(`${folder}/nginx.conf`, configuration);
  return new Child({
    name: `nginx at ${listen}`,
    command: [
      ...[...site.serverSide, nginx.path],
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
