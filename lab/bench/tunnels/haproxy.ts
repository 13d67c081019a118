/**
 * HAProxy in TCP mode, with one thread: two one behind the other, as with nginx,
 * or one alone as a service proxy.
 *
 * @module
 */

import { Child } from "../../../tests/support/program/child.ts";
import { debianCommand } from "../../peers/debian.ts";
import { freePort } from "../../../tests/support/program/ports.ts";
import type { Workspace } from "../../../tests/support/program/workspace.ts";
import { forwarded } from "./forwarders.ts";
import type { Site, Tunnel } from "./site.ts";

const CONNECTIONS_MAX = 8_192;

export async function startHaproxy(site: Site): Promise<Tunnel> {
  if (site.agentSide.join() !== site.serverSide.join()) {
    throw new TypeError("HAProxy dials its second hop, so both share a place");
  }
  const { workspace, serverSide: prefix } = site;
  const outer = `${site.serverHost}:${freePort()}`;
  const inner = `${site.serverHost}:${freePort()}`;
  const hop = (listen: string, onward: string) =>
    startHaproxyHop(workspace, { listen, targets: [onward], prefix });
  const hops = [await hop(outer, inner), await hop(inner, site.target)];
  return forwarded(outer, hops);
}

/** One process. */
export interface HaproxyHop {
  /** `host:port`. */
  readonly listen: string;
  /** `host:port` each, used in turns. */
  readonly targets: readonly string[];
  readonly prefix?: readonly string[];
}

/** Starts one that gives up a dial, and tries another, as ours does. */
export async function startHaproxyHop(
  workspace: Workspace,
  { listen, targets, prefix = [] }: HaproxyHop,
): Promise<Child> {
  const file = workspace.path("haproxy.cfg");
  const servers = targets.map((target, at) => `  server s${at} ${target}\n`);
  await Deno.writeTextFile(
    file,
    `global\n  nbthread 1\n  maxconn ${CONNECTIONS_MAX}\n` +
      "defaults\n  mode tcp\n  timeout connect 250ms\n" +
      "  timeout client 1h\n  timeout server 1h\n" +
      "  retries 3\n  option redispatch 1\n" +
      `listen proxy\n  bind ${listen}\n${servers.join("")}`,
  );
  return new Child({
    name: `HAProxy at ${listen}`,
    command: [...prefix, ...await debianCommand("haproxy"), "-db", "-f", file],
    logFile: workspace.path("haproxy.log"),
  });
}
