/**
 * Networks that lose packets, lead nowhere, or have name servers that are silent:
 * made in network namespaces of their own. Needs root.
 *
 * @module
 */

import type { DoctorStage } from "./doctor_stage.ts";
import type { Fault } from "./fault.ts";

/** Why there can be none here; `undefined`: there can. */
export function whyNoNetworks(): string | undefined {
  if (Deno.build.os !== "linux") return "network namespaces are Linux's";
  return Deno.uid() === 0 ? undefined : "network namespaces need root";
}

/** Nobody has this address: packets to it are lost without a word. */
const SILENT = "10.98.0.2";

/** Runs the command in a network of its own. @param setUp Commands of `ip`. */
function inNetwork(...setUp: readonly string[]): Pick<Fault, "prefix"> {
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
export async function networkFaults(
  stage: DoctorStage,
): Promise<readonly Fault[]> {
  const mine = `--state-dir=${await stage.joined("node1")}`;
  const resolver = stage.path("resolv.conf");
  Deno.writeTextFileSync(resolver, `nameserver ${SILENT}\n`);
  return [
    {
      what: "a firewall drops what goes to the server",
      source: "fatedier/frp#4274",
      args: ["agent", mine, `--server=${SILENT}:8091`],
      code: "TUN401",
      hop: "tcp",
      remedy: /firewall.*TCP port 8091/,
      ...inNetwork(...DEAD_LINE),
    },
    {
      what: "there is no route to the server",
      source: "cloudflare/cloudflared#604",
      args: ["agent", mine, "--server=192.0.2.1:8091"],
      code: "TUN401",
      hop: "tcp",
      remedy: /ip route get/,
      ...inNetwork(),
    },
    {
      what: "the name servers are silent",
      source: "cloudflare/cloudflared#388",
      args: ["agent", mine, "--server=tunnel.example:8091"],
      code: "TUN401",
      hop: "dns",
      remedy: /resolv\.conf/,
      ...inNetwork(
        ...DEAD_LINE,
        `mount --bind ${resolver} /etc/resolv.conf`,
      ),
    },
  ];
}
