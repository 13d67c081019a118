/**
 * Lines that lose packets, swallow large ones, reject, or cut TLS: a network of its
 * own whose packets nftables drops, and a relay to the server. Needs root.
 *
 * @module
 */

import { debianCommand } from "../support/program/debian.ts";
import { mounted, onReadOnlyDisk } from "../mistakes/surroundings.ts";
import type { DoctorStage } from "./doctor_stage.ts";
import { type Fault, fault } from "./fault.ts";

/** Where the relay listens, in the network of the command. */
const RELAY = "10.98.0.1";
const PORT = 8091;

/** See the module description. */
// deno-fmt-ignore: the columns are the point.
export async function lineFaults(
  stage: DoctorStage,
): Promise<readonly Fault[]> {
  const root = await stage.joined("node1");
  const whole = stage.copyOfNode("whole");
  const mine = `--state-dir=${root}`;
  await stage.agent("node2");
  const running = `--state-dir=${stage.nodeDirectory("node2")}`;
  const nft = (await debianCommand("nft")).join(" ");
  const door = stage.door();
  const cutting = stage.cuttingDoor();
  /** @param rules What becomes of packets. */
  const over = (name: string, socket: string, ...rules: readonly string[]) => {
    const file = stage.path(`${name}.nft`);
    const ready = stage.path(`${name}.ready`);
    Deno.writeTextFileSync(
      file,
      "table inet line { chain in { type filter hook input priority 0;\n" +
        `${rules.join("\n")}\n}\n}\n`,
    );
    const relay = new URL("line_relay.ts", import.meta.url).pathname;
    const script = [
      `ip link set lo up && ip addr add ${RELAY}/32 dev lo && mkfifo ${ready}`,
      `${Deno.execPath()} run -A --no-config ${relay} ${RELAY}:${PORT} ` +
      `${socket} >${ready} & relay=$!`,
      `read _ <${ready} && ${nft} -f ${file} && "$@"; code=$?`,
      `kill $relay; exit $code`,
    ].join("\n");
    return { prefix: ["unshare", "-n", "sh", "-c", script, "doctor"] };
  };
  const args = ["agent", mine, `--server=${RELAY}:${PORT}`];
  return [
    fault("a line drops large packets (path MTU)", "tailscale/tailscale#2633",
      "TUN425", "tls", /ICMP.*mtu 1280/, args,
      over("mtu", door, `tcp dport ${PORT} ip length > 700 drop`, `tcp sport ${PORT} ip length > 700 drop`)),
    // The first byte behind TCP's header (20 bytes and its options): a handshake.
    fault("a firewall swallows what is no plain request", "cloudflare/cloudflared#1095",
      "TUN425", "tls", /inspects TLS/, args, over("dpi", door, `tcp dport ${PORT} @ih,0,8 22 drop`)),
    fault("something resets the connection at the ClientHello", "daily use: a middlebox that inspects TLS",
      "TUN208", "tls", /inspects TLS.*openssl s_client/, args, over("cut", cutting)),
    fault("a line loses 40 of 100 packets", "daily use: bad Wi-Fi",
      "TUN425", "tcp", /mtr/, ["agent", running, `--server=${RELAY}:${PORT}`],
      { isOdd: true, ...over("loss", door, `tcp dport ${PORT} tcp flags & syn == syn numgen inc mod 5 < 2 drop`) }),
    fault("a firewall there rejects (administratively prohibited)", "daily use: curl says no route to host at once",
      "TUN401", "tcp", /ip route get/, args,
      over("reject", door, `tcp dport ${PORT} reject with icmpx type admin-prohibited`)),
    fault("this machine's own firewall rejects", "daily use: an output rule",
      "TUN401", "tcp", /tunnel server/, args,
      over("out", door, "}\nchain out { type filter hook output priority 0;", `tcp dport ${PORT} reject`)),
    fault("no name server is named", "daily use: an empty resolv.conf",
      "TUN401", "dns", /resolv\.conf/, ["agent", mine, "--server=tunnel.example:8091"],
      mounted("--bind /dev/null /etc/resolv.conf")),
    fault("the server of this machine accepts nothing", "daily use: a full accept queue",
      "TUN421", "tcp", /hangs/, ["agent", mine, `--server=127.0.0.1:${await stage.deafPort()}`]),
    fault("the disk below the identity is full", "daily use: disk full",
      "TUN905", "disk", /make room/, ["agent", mine],
      mounted(
        `-t tmpfs -o size=1m none ${root} && cp -a ${whole}/. ${root} && ` +
          `head -c 1048576 /dev/zero >${root}/full 2>/dev/null`)),
    fault("the disk below the identity is read-only", "daily use: read-only file system",
      "TUN905", "disk", /dmesg|rw/, ["agent", mine], onReadOnlyDisk(root)),
    // A user of its own: not root by its number, and may read what root may.
    fault("the identity is root's, and somebody else looks", "daily use: doctor without sudo",
      "TUN122", "state", /sudo tunnel doctor agent/, ["agent"],
      mounted('-t tmpfs none /var/lib && mkdir -p /var/lib/tunnel/agent && exec unshare -U "$@"')),
  ];
}
