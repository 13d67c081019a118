/**
 * Lines that lose packets, swallow large ones, reject, or cut TLS: a network of its
 * own whose packets nftables drops, and a relay to the server. Needs root.
 *
 * @module
 */

import { debianCommand } from "../support/program/debian.ts";
import type { DoctorStage } from "./doctor_stage.ts";
import type { Fault } from "./fault.ts";

/** Where the relay listens, in the network of the command. */
const RELAY = "10.98.0.1";
const PORT = 8091;

/** See the module description. */
// deno-lint-ignore tunnel/function-length -- it is a table.
export async function lineFaults(
  stage: DoctorStage,
): Promise<readonly Fault[]> {
  const mine = `--state-dir=${await stage.joined("node1")}`;
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
    {
      what: "a line drops large packets (path MTU)",
      source: "tailscale/tailscale#2633",
      args,
      code: "TUN425",
      hop: "tls",
      remedy: /ICMP.*mtu 1280/,
      ...over(
        "mtu",
        door,
        `tcp dport ${PORT} ip length > 700 drop`,
        `tcp sport ${PORT} ip length > 700 drop`,
      ),
    },
    {
      what: "a firewall swallows what is no plain request",
      source: "cloudflare/cloudflared#1095",
      args,
      code: "TUN425",
      hop: "tls",
      remedy: /inspects TLS/,
      // The first byte behind TCP's header (20 bytes and its options): a handshake.
      ...over("dpi", door, `tcp dport ${PORT} @ih,0,8 22 drop`),
    },
    {
      what: "something resets the connection at the ClientHello",
      source: "daily use: a middlebox that inspects TLS",
      args,
      code: "TUN208",
      hop: "tls",
      remedy: /inspects TLS.*openssl s_client/,
      ...over("cut", cutting),
    },
    {
      what: "a line loses 40 of 100 packets",
      source: "daily use: bad Wi-Fi",
      args: ["agent", running, `--server=${RELAY}:${PORT}`],
      code: "TUN425",
      hop: "tcp",
      remedy: /mtr/,
      isOdd: true,
      ...over(
        "loss",
        door,
        `tcp dport ${PORT} tcp flags & syn == syn numgen inc mod 5 < 2 drop`,
      ),
    },
    {
      what: "a firewall there rejects (administratively prohibited)",
      source: "daily use: curl says no route to host at once",
      args,
      code: "TUN401",
      hop: "tcp",
      remedy: /ip route get/,
      ...over(
        "reject",
        door,
        `tcp dport ${PORT} reject with icmpx type admin-prohibited`,
      ),
    },
    {
      what: "this machine's own firewall rejects",
      source: "daily use: an output rule",
      args,
      code: "TUN401",
      hop: "tcp",
      remedy: /tunnel server/,
      ...over(
        "out",
        door,
        "}\nchain out { type filter hook output priority 0;",
        `tcp dport ${PORT} reject`,
      ),
    },
    {
      what: "no name server is named",
      source: "daily use: an empty resolv.conf",
      args: ["agent", mine, "--server=tunnel.example:8091"],
      code: "TUN401",
      hop: "dns",
      remedy: /resolv\.conf/,
      prefix: [
        ...["unshare", "-m", "sh", "-c"],
        'mount --bind /dev/null /etc/resolv.conf && exec "$@"',
        "doctor",
      ],
    },
    {
      what: "the server of this machine accepts nothing",
      source: "daily use: a full accept queue",
      args: ["agent", mine, `--server=127.0.0.1:${await stage.deafPort()}`],
      code: "TUN421",
      hop: "tcp",
      remedy: /stands still/,
    },
    {
      what: "the disk below the identity is full",
      source: "daily use: disk full",
      args: ["agent", mine],
      code: "TUN905",
      hop: "disk",
      remedy: /make room/,
      ...onMount(
        stage,
        (root) =>
          `-t tmpfs -o size=1m none ${root} && cp -a ${root}.whole/. ${root} && ` +
          `head -c 1048576 /dev/zero >${root}/full 2>/dev/null`,
      ),
    },
    {
      what: "the disk below the identity is read-only",
      source: "daily use: read-only file system",
      args: ["agent", mine],
      code: "TUN905",
      hop: "disk",
      remedy: /dmesg|rw/,
      ...onMount(stage, (root) => `--bind -o ro ${root} ${root}`),
    },
    {
      what: "the identity is root's, and somebody else looks",
      source: "daily use: doctor without sudo",
      args: ["agent"],
      code: "TUN122",
      hop: "state",
      remedy: /sudo tunnel doctor agent/,
      // A user of its own: not root by its number, and may read what root may.
      prefix: [
        ...["unshare", "-m", "sh", "-c"],
        "mount -t tmpfs none /var/lib && mkdir -p /var/lib/tunnel/agent && " +
        'exec unshare -U "$@"',
        "doctor",
      ],
    },
  ];
}

/** What is mounted there is mounted for the command alone. */
function onMount(
  stage: DoctorStage,
  mount: (root: string) => string,
): Pick<Fault, "prefix"> {
  const root = stage.nodeDirectory("node1");
  const script = `cp -a ${root} ${root}.whole 2>/dev/null; mount ${
    mount(root)
  }; exec "$@"`;
  return { prefix: ["unshare", "-m", "sh", "-c", script, "doctor"] };
}
