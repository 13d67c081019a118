/**
 * Why TLS with a server did not come about: what listens there instead, whose
 * certificate it shows, and whose clock is wrong.
 *
 * @module
 */

import {
  codeOf,
  messageOf,
  quietly,
} from "../../../platform/errors/error_code.ts";
import { orAborted } from "../../../platform/time/deadline.ts";
import {
  type CertificateFacts,
  certificateFacts,
} from "../../../platform/pki/certificate.ts";
import {
  alternativeNamesOf,
  certificateSubject,
} from "../../../platform/pki/certificate_words.ts";
import {
  ConnectError,
  shownCertificates,
} from "../../../net/dial/server_connect.ts";
import {
  type TlsFailure,
  TlsHandshakeError,
} from "../../../net/tls/trust/tls_errors.ts";
import { TUNNEL_SERVER_NAME } from "../../../proto/identity/node_name.ts";
import { hostPort } from "../../../proto/peer/host_port.ts";
import { whenText } from "../../view/cells.ts";
import { failed, type Finding } from "./path_walk.ts";
import {
  answersInSmallPackets,
  PORT_KIND_WORDS,
  portKind,
  type ServerPathOptions,
  staysOpen,
} from "./probes.ts";

/** Looking what else is there takes no longer. */
const LOOK_MS = 1_000;

/** @param ip The address that answered, where it was looked up. */
export async function tlsFault(
  error: unknown,
  options: ServerPathOptions,
  ip: string | undefined,
): Promise<Finding> {
  const { host, port } = options.address;
  const where = hostPort(host, port);
  const failure: TlsFailure | undefined = error instanceof TlsHandshakeError
    ? error.failure
    : error instanceof ConnectError
    ? "timeout"
    : undefined;
  switch (failure) {
    case undefined:
      return failed("TUN208", messageOf(error), SEE_LOG);
    case "not-tls":
    case "closed":
    case "timeout":
      return await noTls(
        where,
        failure,
        codeOf((error as Error).cause) === "ECONNRESET",
        options,
        ip,
      );
    case "no-common-alpn":
      return failed(
        "TUN208",
        `${where} speaks TLS and is no tunnel server's port for agents: it ` +
          "knows none of our protocols (ALPN)",
        AGENT_PORT,
      );
    case "untrusted-certificate":
    case "expired-certificate":
    case "not-yet-valid-certificate":
    case "wrong-usage-certificate":
    case "wrong-name":
      return await certificateFault(where, failure, options, ip);
    case "refused-by-peer":
    case "no-certificate":
      return refused(messageOf(error));
    case "no-common-version":
    case "other":
      return failed("TUN208", messageOf(error), SEE_LOG);
  }
}

const SEE_LOG = "look into the server's log, and run `tunnel doctor server` " +
  "there";

const AGENT_PORT = "correct the port in --server: agents connect to the " +
  "server's --agent-port, 8091 unless said";

/** The server refuses the shown certificate. */
export function refused(message: string): Finding {
  if (/expired/.test(message)) {
    return failed(
      "TUN206",
      message,
      "compare this machine's clock with the server's; a node that joined " +
        "renews by itself when its agent starts",
    );
  }
  return failed(
    "TUN206",
    message,
    "this node's certificate is of another CA than the server's: join again " +
      "with a token of `tunnel token create` on that server (tunnel join " +
      "TOKEN --again), or give --agent-cert of its CA",
  );
}

/**
 * Nothing of TLS came back, or an end: a stopped program, one with another
 * protocol, and a line that drops or cuts the handshake are distinguished by
 * further probes at the same time.
 */
async function noTls(
  where: string,
  failure: TlsFailure,
  isReset: boolean,
  options: ServerPathOptions,
  ip: string | undefined,
): Promise<Finding> {
  const { address: { host, port }, proxyEnv } = options;
  const isProxied = ip === undefined && !!proxyEnv.httpsProxy;
  const [kind, isSmallHeard, isOpen] = isProxied ? [] : await Promise.all([
    inTime((signal) => portKind(ip ?? host, port, signal)),
    inTime((signal) => inSmallPackets(options, ip, signal)),
    inTime((signal) => staysOpen(ip ?? host, port, signal)),
  ]);
  const found = kind?.kind ?? "silent";
  const isMute = found === "silent" || found === "closed" || found === "tls";
  if (isMute && failure === "timeout" && isSmallHeard === true) {
    return failed(
      "TUN425",
      `${where} answers a TLS handshake in small packets, and not in whole ` +
        "ones: something on the way drops large packets (path MTU)",
      "let ICMP (fragmentation needed, packet too big) through, or send " +
        "smaller packets: ip link set dev INTERFACE mtu 1280",
    );
  }
  if (isMute && failure === "timeout" && found !== "silent") {
    return failed(
      "TUN425",
      `${where} hangs up on a plain request, and is silent to a TLS ` +
        "handshake: something on the way swallows it",
      "let the firewall or proxy that inspects TLS pass TCP port " +
        `${port} through; else ${AGENT_PORT}`,
    );
  }
  if (isMute && failure === "closed" && isOpen === true) {
    return failed(
      "TUN208",
      `${where} ${isReset ? "resets" : "ends"} the connection as soon as TLS ` +
        "begins; one that says nothing stays open",
      "something on the way inspects TLS (compare: openssl s_client -connect " +
        `${where} from another network), and is to let TCP port ${port} ` +
        `through; else ${AGENT_PORT}`,
    );
  }
  if (found === "silent") {
    return failed(
      "TUN421",
      `${where} accepts connections and says nothing: ` +
        (failure === "timeout"
          ? "no TLS handshake within its time"
          : "it is no TLS server"),
      "if it is the right port, the server hangs: restart it; else " +
        AGENT_PORT,
    );
  }
  if (found === "closed") {
    return failed(
      "TUN208",
      `${where} takes connections and hangs up before it says anything, so ` +
        "whether it speaks TLS is not known",
      "a balancer without a live server behind it, an allow-list or a limit " +
        `does that: look at what has that port; else ${AGENT_PORT}`,
    );
  }
  return failed(
    "TUN208",
    `${where} does not speak TLS: it is ${PORT_KIND_WORDS[found]}`,
    AGENT_PORT,
  );
}

async function inSmallPackets(
  { address, serverName = address.host, alpn }: ServerPathOptions,
  ip: string | undefined,
  signal: AbortSignal,
): Promise<boolean> {
  if (ip === undefined) return false;
  const { port } = address;
  return await answersInSmallPackets(
    { hostname: ip, port },
    { serverName, alpn },
    signal,
  );
}

async function certificateFault(
  where: string,
  failure: TlsFailure,
  options: ServerPathOptions,
  ip: string | undefined,
): Promise<Finding> {
  const leaf = await leafShown(options, ip);
  const nowMs = Date.now();
  const subject = leaf === undefined
    ? "it"
    : certificateSubject(leaf.x509).slice(0, 100);
  const isOver = leaf !== undefined && leaf.notAfterMs < nowMs;
  const isEarly = leaf !== undefined && leaf.notBeforeMs > nowMs;
  if (failure === "expired-certificate" || isOver) {
    return await overdue("expired", where, subject, leaf, options, ip);
  }
  if (failure === "not-yet-valid-certificate" || isEarly) {
    return await overdue("early", where, subject, leaf, options, ip);
  }
  if (failure === "wrong-name") {
    const names = leaf === undefined
      ? "other names"
      : alternativeNamesOf(new Uint8Array(leaf.x509.raw)).slice(0, 200);
    const wanted = options.serverName ?? options.address.host;
    return failed(
      "TUN207",
      `${where} shows a certificate for ${names}, wanted ${wanted}`,
      "name the server in --server as its certificate does, or issue it a " +
        "certificate for that name",
    );
  }
  if (failure === "wrong-usage-certificate") {
    return failed(
      "TUN203",
      `${where} shows a certificate that is not for servers (${subject})`,
      "give the server a certificate with the usage serverAuth",
    );
  }
  const isTunnel = leaf?.x509.checkHost(TUNNEL_SERVER_NAME) !== undefined;
  return failed(
    "TUN205",
    `${where} shows a certificate (${subject}) that no CA trusted here has ` +
      "signed",
    isTunnel
      ? "it is another tunnel server, or its CA was made again: correct " +
        "--server, or join again with a token of `tunnel token create` " +
        "there (tunnel join TOKEN --again)"
      : "correct --server if this is another service; else give the CA of " +
        "the server with --ca-cert",
  );
}

/** A date is over, or not yet come: by which of two clocks is the question. */
async function overdue(
  what: "expired" | "early",
  where: string,
  subject: string,
  leaf: CertificateFacts | undefined,
  options: ServerPathOptions,
  ip: string | undefined,
): Promise<Finding> {
  const nowMs = Date.now();
  const theirsMs = await clockThere(options, ip);
  const skewMs = theirsMs === undefined ? 0 : theirsMs - nowMs;
  const dates = leaf === undefined
    ? ""
    : ` (valid ${whenText(leaf.notBeforeMs)} to ` +
      `${whenText(leaf.notAfterMs)}; our clock says ${whenText(nowMs)}` +
      (theirsMs === undefined ? "" : `, the server's ${whenText(theirsMs)}`) +
      ")";
  const words = what === "expired" ? "has expired" : "is not valid yet";
  const message = `the certificate of ${where}, ${subject}, ${words}${dates}`;
  if (Math.abs(skewMs) > SKEW_MS || (what === "early" && skewMs === 0)) {
    const by = Math.abs(skewMs) > SKEW_MS
      ? `, which differs by ${spanOf(Math.abs(skewMs))}`
      : "";
    return failed(
      "TUN916",
      message,
      `set this machine's clock${by} (timedatectl set-ntp true, or chronyc ` +
        "makestep)",
    );
  }
  return failed(
    "TUN201",
    message,
    "renew the server's certificate there; a server with its own CA does " +
      "that by itself while it runs: see its log, and its clock",
  );
}

/** Clocks that differ by less are no reason for anything. */
export const SKEW_MS = 60_000;

/** The server's default; a configured one is unknown here. */
const SERVER_HEALTH_PORT = 8092;

/** What the server's clock says, where its health port can be reached. */
async function clockThere(
  { address: { host } }: ServerPathOptions,
  ip: string | undefined,
): Promise<number | undefined> {
  const found = await inTime((signal) =>
    portKind(ip ?? host, SERVER_HEALTH_PORT, signal)
  );
  return found?.dateMs;
}

async function leafShown(
  options: ServerPathOptions,
  ip: string | undefined,
): Promise<CertificateFacts | undefined> {
  const { address, serverName, proxyEnv, alpn } = options;
  const chain = await inTime(() =>
    shownCertificates({
      ...address,
      ip,
      serverName,
      proxyEnv,
      alpn,
      timeoutMs: LOOK_MS,
    })
  );
  const [leaf] = chain ?? [];
  // A stranger's may be anything, and is only described here.
  return leaf && quietly(() => certificateFacts(leaf));
}

/** Additional probes: they may fail, or be late. */
function inTime<Value>(
  look: (signal: AbortSignal) => Promise<Value>,
): Promise<Value | undefined> {
  const signal = AbortSignal.timeout(LOOK_MS);
  return orAborted(look(signal), signal).catch(() => undefined);
}

/** Such as `3 days`, `2 hours`. */
export function spanOf(ms: number): string {
  const units: readonly (readonly [number, string])[] = [
    [86_400_000, "day"],
    [3_600_000, "hour"],
    [60_000, "minute"],
    [1_000, "second"],
  ];
  const [size, unit] = units.find(([size]) => ms >= size) ?? units.at(-1)!;
  const count = Math.round(ms / size);
  return `${count} ${unit}${count === 1 ? "" : "s"}`;
}
