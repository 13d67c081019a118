/**
 * The way to a server's port for agents, hop by hop: name, TCP, proxy, TLS. It
 * uses the same code with which agents and nodes connect, so that doctor and
 * agents never disagree. It ends before the tunnel's protocol begins.
 *
 * @module
 */

import { ownerWords, portOwner } from "../../../net/libc/port_owner.ts";
import {
  codeOf,
  messageOf,
  quietly,
} from "../../../platform/errors/error_code.ts";
import { orAborted } from "../../../platform/time/deadline.ts";
import { systemTimers } from "../../../platform/time/system_timers.ts";
import {
  proxyFor,
  type ProxyServer,
} from "../../../net/dial/proxy_environment.ts";
import { openTunnel } from "../../../net/dial/proxy_tunnel.ts";
import { connectToHost } from "../../../net/dial/connect_host.ts";
import { ADDRESSES_PER_NAME_MAX } from "../../../net/dial/server_addresses.ts";
import {
  connectTls,
  sayGoodbye,
  type TlsConnectOptions,
} from "../../../net/dial/server_connect.ts";
import { LookupError } from "../../../net/names/resolver.ts";
import { systemResolver } from "../../../net/names/system_resolver.ts";
import type { Stream } from "../../../net/stream/stream.ts";
import { HTTP2_ALPN, STREAMS_ALPN } from "../../../proto/link/hello.ts";
import { hostPort } from "../../../proto/peer/host_port.ts";
import { parseIpAddress } from "../../../proto/peer/ip_address.ts";
import { clipped } from "../../../proto/peer/quoted.ts";
import {
  failed,
  type Finding,
  fine,
  type Hop,
  HOP_MS,
  warned,
} from "./path_walk.ts";
import { isHere, lookAtLine, type ServerPathOptions } from "./probes.ts";
import { tlsFault } from "./tls_fault.ts";

/** A machine that does not answer a SYN costs no more than this. */
const TCP_MS = 1_500;

/** A handshake (2 s), a look at what else is there (1 s), and a busy machine. */
const TLS_MS = 3_900;

const SEE_RESOLVER = "see which name servers /etc/resolv.conf names, and " +
  "whether they answer from here; an address in --server needs none";

/** One server, and the way there. */
export class ServerPath {
  #proxy: ProxyServer | undefined;
  #ips: readonly string[] = [];
  #ip: string | undefined;
  #stream: Stream | undefined;

  constructor(readonly options: ServerPathOptions) {}

  /** `HOST:PORT`. */
  get name(): string {
    const { host, port } = this.options.address;
    return hostPort(host, port);
  }

  /**
   * The connection that `tls` has made, for the hops after it: a server waits
   * for an agent there, and reports a connection that simply ends.
   *
   * @returns `undefined`: there is none, or it does not speak {@linkcode
   *   STREAMS_ALPN}.
   */
  takeStream(): Stream | undefined {
    const stream = this.#stream;
    this.#stream = undefined;
    if (stream?.alpn === STREAMS_ALPN) return stream;
    if (stream !== undefined) sayGoodbye(stream);
    return undefined;
  }

  /** Up to a connection, in order. */
  get hopsToServer(): readonly Hop[] {
    return this.hops.slice(0, -1);
  }

  /** In order. */
  get hops(): readonly Hop[] {
    const { host } = this.options.address;
    return [
      {
        name: "proxy",
        look: (signal) => this.#lookAtProxy(signal),
        late: failed(
          "TUN401",
          `the proxy does not answer within ${HOP_MS} ms`,
          `correct HTTPS_PROXY, or go past it with NO_PROXY=${host}`,
        ),
      },
      {
        name: "dns",
        look: (signal) => this.#resolve(signal),
        late: failed(
          "TUN401",
          `no name server says within ${HOP_MS} ms what ${host} is`,
          SEE_RESOLVER,
        ),
      },
      { name: "tcp", look: (signal) => this.#connect(signal) },
      {
        name: "tls",
        deadlineMs: TLS_MS,
        look: () => this.#handshake(),
        late: failed(
          "TUN421",
          `${this.name} accepts connections and says nothing`,
          "if it is the right port, the server hangs: restart it",
        ),
      },
    ];
  }

  /** How agents connect, but for ALPN: to the address that answered. */
  get connect(): Omit<TlsConnectOptions, "alpn"> {
    const { address, credentials, serverName, proxyEnv } = this.options;
    return {
      ...address,
      ip: this.#ip,
      serverName,
      credentials,
      proxyEnv,
      timeoutMs: HOP_MS,
    };
  }

  /** Why TLS with it did not come about. @param error As it was thrown. */
  tlsFault(error: unknown): Promise<Finding> {
    return tlsFault(error, this.options, this.#ip);
  }

  async #lookAtProxy(signal: AbortSignal): Promise<Finding | undefined> {
    const { address: { host, port }, proxyEnv } = this.options;
    try {
      this.#proxy = proxyFor(host, port, proxyEnv);
    } catch (error) {
      return failed(
        "TUN401",
        messageOf(error),
        "correct HTTPS_PROXY, such as http://user:password@proxy:3128, or unset it",
      );
    }
    const proxy = this.#proxy;
    if (proxy === undefined) return undefined;
    const where = hostPort(proxy.host, proxy.port);
    let stream: Stream;
    try {
      stream = await connectToHost(proxy.host, proxy.port, {
        timers: systemTimers,
        signal,
      });
    } catch (error) {
      return failed(
        "TUN401",
        `HTTPS_PROXY names the proxy ${where}, and it cannot be reached: ` +
          connectWords(error),
        `start the proxy or correct HTTPS_PROXY; for no proxy to ${host}, ` +
          `NO_PROXY=${host}`,
      );
    }
    try {
      await openTunnel(stream, this.name, proxy, signal);
      stream.close();
      return fine(`${where} makes tunnels to ${this.name}`);
    } catch (error) {
      return proxyRefusal(where, this.name, messageOf(error));
    }
  }

  async #resolve(signal: AbortSignal): Promise<Finding | undefined> {
    const { host } = this.options.address;
    if (this.#proxy !== undefined) return undefined;
    if (parseIpAddress(host) !== undefined) {
      this.#ips = [host];
      return undefined;
    }
    try {
      const found = await orAborted(systemResolver.lookup(host), signal);
      this.#ips = found.slice(0, ADDRESSES_PER_NAME_MAX);
      return fine(`${host} is ${this.#ips.join(", ")}`);
    } catch (error) {
      const fault = error instanceof LookupError ? error.fault : "timeout";
      if (fault === "unknown") {
        return failed(
          "TUN401",
          `no name server knows ${host}`,
          "correct --server, or add the name where this machine looks " +
            `(getent hosts ${host})`,
        );
      }
      return failed(
        "TUN401",
        `${host} cannot be looked up: ${
          nameServers() === ""
            ? "/etc/resolv.conf names no name server"
            : messageOf(error)
        }`,
        /misbehaving/.test(messageOf(error))
          ? `the name server of /etc/resolv.conf (${nameServers()}) does ` +
            "answer, and will not say: ask who runs it (an ACL, its own " +
            "forwarders), or name another"
          : SEE_RESOLVER,
      );
    }
  }

  async #connect(signal: AbortSignal): Promise<Finding | undefined> {
    const { port } = this.options.address;
    if (this.#proxy !== undefined) return undefined;
    const give = new AbortController();
    const timer = systemTimers.after(TCP_MS, () => give.abort(NO_ANSWER));
    const both = AbortSignal.any([signal, give.signal]);
    const results = await Promise.all(this.#ips.map(async (ip) => ({
      ip,
      ...await lookAtLine({ hostname: ip, port }, both),
    })));
    timer.cancel();
    this.#ip = results.find(({ error }) => error === undefined)?.ip;
    const failures = results.filter(({ error }) => error !== undefined);
    if (this.#ip === undefined) return tcpFault(this.name, port, failures);
    const loss = results.find(({ ip }) => ip === this.#ip)?.loss;
    if (loss !== undefined) {
      return warned(
        "TUN425",
        `the line to ${this.name} loses packets: ${loss}`,
        `see where: mtr -T -P ${port} ${this.#ip}; a bad cable, Wi-Fi, or a ` +
          "line that is full",
      );
    }
    if (failures.length === 0) {
      return fine(`${this.name} accepts connections`);
    }
    const others = failures.map(({ ip, error }) =>
      `${ip}: ${connectWords(error)}`
    );
    return warned(
      "TUN401",
      `${this.#ip} accepts connections, others of ${this.name} do not (${
        others.join("; ")
      })`,
      "start the server there, or take the address out of the name's records",
    );
  }

  async #handshake(): Promise<Finding> {
    try {
      const stream = await connectTls({
        ...this.connect,
        alpn: this.options.alpn,
      });
      const { alpn } = stream;
      this.#stream = stream;
      if (alpn === STREAMS_ALPN || !this.options.alpn.includes(STREAMS_ALPN)) {
        return fine(`the certificate is good, ALPN is ${alpn}`);
      }
      const seen = alpn === "" ? "no ALPN name" : `ALPN ${alpn}`;
      return warned(
        "TUN210",
        `the server is trusted, but chose ${seen} in place of ` +
          `${STREAMS_ALPN}: something on the way ends TLS or takes ALPN away`,
        "let load balancers pass TCP through (no TLS termination) to the " +
          `agents' port; ${HTTP2_ALPN} works, slower`,
      );
    } catch (error) {
      return await this.tlsFault(error);
    }
  }
}

/** That name means this machine then, which rarely has a server. */
function nameServers(): string {
  // Without the file there are none (resolv.conf(5)).
  const text = quietly(() => Deno.readTextFileSync("/etc/resolv.conf")) ?? "";
  return [...text.matchAll(/^\s*nameserver\s+(\S+)/gm)]
    .map(([, address]) => address).join(", ");
}

const NO_ANSWER = Object.assign(new Error("no answer"), { code: "ETIMEDOUT" });

const WORDS: ReadonlyMap<string, string> = new Map([
  ["ECONNREFUSED", "connection refused"],
  ["ETIMEDOUT", `no answer within ${TCP_MS} ms`],
  ["EHOSTUNREACH", "no route to host"],
  ["ENETUNREACH", "network is unreachable"],
  ["EMFILE", "too many open files"],
  ["ENFILE", "too many open files on this machine"],
  ["EACCES", "this machine's firewall forbids it"],
  ["EPERM", "this machine's firewall forbids it"],
]);

function connectWords(error: unknown): string {
  return WORDS.get(codeOf(error)) ?? clipped(messageOf(error), 200);
}

/** The finding of all tried addresses; each contributes its worst. */
function tcpFault(
  name: string,
  port: number,
  failures: readonly { readonly ip: string; readonly error?: unknown }[],
): Finding {
  const codes = new Set(failures.map(({ error }) => codeOf(error)));
  const each = failures.map(({ ip, error }) => `${ip}: ${connectWords(error)}`);
  const message = `nothing accepts connections at ${name} (${each.join("; ")})`;
  if (codes.has("ECONNREFUSED")) {
    return failed(
      "TUN401",
      message,
      "start `tunnel server` there, or let it listen on more than loopback " +
        "(--agent-bind-address), or correct --server: agents connect to its " +
        "--agent-port, 8091 unless said (`tunnel doctor server` there)",
    );
  }
  if (codes.has("EMFILE") || codes.has("ENFILE")) {
    return failed(
      "TUN513",
      message,
      'raise "ulimit -n" (LimitNOFILE in systemd)',
    );
  }
  if (codes.has("EHOSTUNREACH") || codes.has("ENETUNREACH")) {
    return failed(
      "TUN401",
      message,
      `see \`ip route get ${
        failures[0]!.ip
      }\`: this machine has no way there, ` +
        "or one on the way says so",
    );
  }
  const here = failures.find(({ ip }) => isHere(ip));
  if (here !== undefined) {
    const owner = portOwner(port);
    return failed(
      "TUN421",
      message + "; the address is this machine's own, and no firewall is " +
        "between" +
        (owner === undefined ? "" : `: ${ownerWords(owner)} accepts nothing`),
      "the program that listens there hangs or is overloaded: restart " +
        "it, or correct --server",
    );
  }
  return failed(
    "TUN401",
    message,
    `a firewall drops it, or the machine is off: let TCP port ${port} ` +
      "through to the server, or correct --server",
  );
}

function proxyRefusal(where: string, target: string, reason: string): Finding {
  const message = `the proxy ${where} makes no tunnel to ${target}: ${reason}`;
  if (/\b407\b/.test(reason)) {
    return failed(
      "TUN401",
      message,
      "HTTPS_PROXY=http://USER:PASSWORD@" + where,
    );
  }
  return failed(
    "TUN401",
    message,
    `let the proxy pass CONNECT ${target}, or go past it with NO_PROXY`,
  );
}
