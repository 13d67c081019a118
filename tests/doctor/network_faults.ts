/**
 * Networks that lose packets, lead nowhere, or have name servers that are silent:
 * made in network namespaces of their own. Needs root.
 *
 * @module
 */

import type { Surroundings } from "../mistakes/surroundings.ts";
import type { DoctorStage } from "./doctor_stage.ts";
import { type Fault, fault } from "./fault.ts";

/** Why there can be none here; `undefined`: there can. */
export function whyNoNetworks(): string | undefined {
  if (Deno.build.os !== "linux") return "network namespaces are Linux's";
  return Deno.uid() === 0 ? undefined : "network namespaces need root";
}

/** Nobody has this address: packets to it are lost without a word. */
const SILENT = "10.98.0.2";

/** Runs the command in a network of its own. @param setUp Commands of `ip`. */
function inNetwork(...setUp: readonly string[]): Surroundings {
  const script = ["ip link set lo up", ...setUp, 'exec "$@"'].join(" && ");
  return { prefix: ["unshare", "-n", "-m", "sh", "-c", script, "doctor"] };
}

/** A line whose other end never answers, not even ARP. */
const DEAD_LINE = [
  "ip link add dead type veth peer name end",
  "ip link set end up",
  "ip addr add 10.98.0.1/24 dev dead",
  "ip link set dead up",
  `ip neigh add ${SILENT} lladdr 02:00:00:00:00:02 dev dead nud permanent`,
];

/** See the module description. */
// deno-fmt-ignore: the columns are the point.
export async function networkFaults(
  stage: DoctorStage,
): Promise<readonly Fault[]> {
  const mine = `--state-dir=${await stage.joined("node1")}`;
  const resolver = stage.file("resolv.conf", `nameserver ${SILENT}\n`);
  return [
    fault("a firewall drops what goes to the server", "fatedier/frp#4274",
      "TUN401", "tcp", /firewall.*TCP port 8091/, ["agent", mine, `--server=${SILENT}:8091`], inNetwork(...DEAD_LINE)),
    fault("there is no route to the server", "cloudflare/cloudflared#604",
      "TUN401", "tcp", /ip route get/, ["agent", mine, "--server=192.0.2.1:8091"], inNetwork()),
    fault("the name servers are silent", "cloudflare/cloudflared#388",
      "TUN401", "dns", /resolv\.conf/, ["agent", mine, "--server=tunnel.example:8091"],
      inNetwork(...DEAD_LINE, `mount --bind ${resolver} /etc/resolv.conf`)),
  ];
}
