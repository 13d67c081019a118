/**
 * `HTTPS_PROXY` and `NO_PROXY`, read as curl and Go read them.
 *
 * @module
 */

import type { Code } from "../../proto/codes/codes.ts";
import { withoutBrackets } from "../../proto/peer/host_port.ts";
import {
  isLoopbackHost,
  parseIpAddress,
  parseIpPrefix,
  prefixContains,
} from "../../proto/peer/ip_address.ts";

/** The environment's words; empty or absent means none. */
export interface ProxyEnvironment {
  /** Such as `http://user:secret@proxy:3128`, or just `proxy:3128`. */
  readonly httpsProxy?: string | undefined;
  /** `*`, hosts, `.suffixes`, addresses, CIDRs, each perhaps with `:port`. */
  readonly noProxy?: string | undefined;
}

/** A proxy that makes tunnels. */
export interface ProxyServer {
  /** The proxy's address and protocol: CONNECT, or RFC 1928. */
  readonly scheme: "http" | "https" | "socks5";
  readonly host: string;
  readonly port: number;
  /** Empty when it asks for none. */
  readonly user: string;
  readonly password: string;
}

/** A proxy address that cannot be used. */
export class ProxyAddressError extends Error {
  override readonly name = "ProxyAddressError";
  readonly tunnelCode: Code = "TUN401";
}

/** Reads the environment; lower case wins, as with curl. */
export function proxyEnvironment(
  get: (name: string) => string | undefined,
): ProxyEnvironment {
  return {
    httpsProxy: get("https_proxy") || get("HTTPS_PROXY"),
    noProxy: get("no_proxy") || get("NO_PROXY"),
  };
}

/**
 * The proxy for a TLS connection to `host:port`; `undefined` means direct.
 * Loopback is always direct, as in Go.
 *
 * @throws {ProxyAddressError}
 */
export function proxyFor(
  host: string,
  port: number,
  environment: ProxyEnvironment,
): ProxyServer | undefined {
  const { httpsProxy, noProxy } = environment;
  if (!httpsProxy || isLoopbackHost(host)) return undefined;
  const entries = (noProxy ?? "").split(/[\s,]+/).filter((text) => text !== "");
  if (entries.some((entry) => covers(entry, host, port))) return undefined;
  return proxyOf(httpsProxy, "HTTPS_PROXY");
}

function covers(entry: string, host: string, port: number): boolean {
  if (entry === "*") return true;
  const prefix = parseIpPrefix(entry);
  const address = parseIpAddress(host);
  if (prefix !== undefined) {
    return address !== undefined && prefixContains(prefix, address);
  }
  const [name, onlyPort] = splitPort(entry);
  if (onlyPort !== undefined && onlyPort !== port) return false;
  const sole = parseIpAddress(name);
  if (sole !== undefined) {
    return address !== undefined && sole.length === address.length &&
      sole.every((byte, index) => byte === address[index]);
  }
  if (address !== undefined) return false;
  const domain = name.toLowerCase().replace(/^\*?\./, "");
  const wanted = host.toLowerCase().replace(/\.$/, "");
  // "example.com" matches itself and names below it; ".example.com" only names
  // below it.
  if (wanted.endsWith(`.${domain}`)) return true;
  return wanted === domain && !/^\*?\./.test(name);
}

function splitPort(entry: string): [name: string, port: number | undefined] {
  const match = /^(?:\[([^\]]+)\]|([^:]+)):([0-9]+)$/.exec(entry);
  if (match === null) return [withoutBrackets(entry), undefined];
  return [match[1] ?? match[2]!, Number(match[3])];
}

/**
 * A proxy by its address.
 *
 * @param who The source of the address, for the error.
 * @param schemes How it may be reached.
 * @throws {ProxyAddressError}
 */
export function proxyOf(
  text: string,
  who: string,
  schemes: readonly ProxyServer["scheme"][] = ["http"],
): ProxyServer {
  const withScheme = text.includes("://") ? text : `http://${text}`;
  if (!URL.canParse(withScheme)) {
    throw new ProxyAddressError(
      `Cannot use ${who}: it is no URL, wanted http://host:port`,
    );
  }
  const url = new URL(withScheme);
  const scheme = schemes.find((one) => `${one}:` === url.protocol);
  if (scheme === undefined) {
    throw new ProxyAddressError(
      `Cannot use ${who}: its scheme is ${url.protocol.slice(0, -1)}, ` +
        `wanted ${schemes.join(", ")}` +
        (schemes.includes("https")
          ? ""
          : " (a proxy that is itself reached in plain)"),
    );
  }
  return {
    scheme,
    host: withoutBrackets(url.hostname),
    port: url.port === "" ? DEFAULT_PORTS[scheme] : Number(url.port),
    user: decodeURIComponent(url.username),
    password: decodeURIComponent(url.password),
  };
}

const DEFAULT_PORTS = { http: 80, https: 443, socks5: 1080 } as const;
