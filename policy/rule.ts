/**
 * One rule about targets: `tcp:10.0.0.0/8:80,443`, `udp:*:53`,
 * `tcp:*.internal:*`, `*:[fd00::/8]:1-1023`, `unix:/run/app/*.sock`.
 *
 * Only the language is here: text in, rule out, or an error with a column and a
 * correction. `rule_set.ts` defines what a rule means for a target; its list
 * decides whether it allows or denies.
 *
 * @module
 */

import type { Code } from "../proto/codes/codes.ts";
import { clipped } from "../proto/peer/quoted.ts";
import { domainToASCII } from "node:url";
import {
  formatIpAddress,
  type IpPrefix,
  parseIpAddress,
  parseIpPrefix,
} from "../proto/peer/ip_address.ts";
import { isUnspecified } from "./subject.ts";
import { isIpv4Lookalike, plainName } from "../proto/peer/host_port.ts";
import { Wildcard } from "./wildcard.ts";

/** Longest rule; a name has 253 characters at most, a socket's path 107. */
export const RULE_LENGTH_MAX = 1024;

/** Which hosts a rule is about. */
export type HostPattern =
  /** Every name and every address. */
  | { readonly kind: "any" }
  /** Addresses, also those that a name turns out to have. */
  | { readonly kind: "prefix"; readonly prefix: IpPrefix }
  /** Names as they are asked for, never addresses. */
  | { readonly kind: "name"; readonly pattern: Wildcard };

/** Both ends belong to it. */
export interface PortRange {
  readonly first: number;
  readonly last: number;
}

/** A rule that was read. */
export type Rule =
  | {
    readonly kind: "endpoint";
    readonly text: string;
    /** `*` is both of them; a unix socket is never meant by it. */
    readonly protocol: "tcp" | "udp" | "*";
    readonly host: HostPattern;
    readonly ports: readonly PortRange[];
  }
  | {
    readonly kind: "path";
    readonly text: string;
    readonly pattern: Wildcard;
  };

/** A rule that cannot be read; the message is one sentence. */
export class RuleError extends Error {
  override readonly name = "RuleError";
  readonly tunnelCode: Code = "TUN101";

  /** The message without its verb, for callers with a verb of their own. */
  readonly detail: string;

  /**
   * @param column Position in the rule, counted from 1. @param problem What was
   *   seen there, what was wanted, what to write.
   */
  constructor(rule: string, readonly column: number, problem: string) {
    const detail = `the rule "${
      clipped(rule, RULE_LENGTH_SHOWN)
    }", column ${column}: ${problem}`;
    super(`Cannot read ${detail}`);
    this.detail = detail;
  }
}

const ALL_PORTS: readonly PortRange[] = [{ first: 1, last: 65_535 }];

const FORM = "PROTO:HOST:PORTS, such as tcp:10.0.0.0/8:443, or unix:PATH";

/**
 * Reads a rule.
 *
 * @throws {RuleError}
 */
export function parseRule(given: string): Rule {
  const text = given.trim();
  if (text.length > RULE_LENGTH_MAX) {
    const seen = `${text.length} characters were seen`;
    const problem = `${seen}, ${RULE_LENGTH_MAX} are allowed`;
    throw new RuleError(text, RULE_LENGTH_MAX + 1, problem);
  }
  const colon = text.indexOf(":");
  if (colon === -1) {
    throw new RuleError(text, 1, `saw no colon, wanted ${FORM}`);
  }
  const protocol = text.slice(0, colon).toLowerCase();
  if (protocol === "unix") return parsePathRule(text, colon + 1);
  if (protocol !== "tcp" && protocol !== "udp" && protocol !== "*") {
    throw new RuleError(
      text,
      1,
      `saw "${clipped(protocol)}", wanted tcp, udp, unix or *; write ${FORM}`,
    );
  }
  const { host, from, portsFrom } = splitHost(text, colon + 1);
  return {
    kind: "endpoint",
    text,
    protocol,
    host: parseHost({ text, host, from }),
    ports: parsePorts(text, portsFrom),
  };
}

/** A host in its rule, so that errors can say where it stands. */
interface HostText {
  readonly text: string;
  readonly host: string;
  readonly from: number;
}

/** @param from Index of the host's first character. */
function splitHost(text: string, from: number) {
  if (text[from] === "[") {
    const end = text.indexOf("]", from);
    if (end === -1) {
      throw new RuleError(text, from + 1, 'saw "[" without "]"; add it');
    }
    // Both spellings are common: [fd00::/8] and [fd00::]/8.
    const length = /^\/[0-9]*/.exec(text.slice(end + 1))?.[0] ?? "";
    const colon = end + 1 + length.length;
    if (text[colon] !== ":") throw noPorts(text, colon);
    const inner = text.slice(from + 1, end);
    if (!inner.includes(":")) {
      throw new RuleError(
        text,
        from + 1,
        `saw "[${inner}]", wanted an IPv6 address in the brackets; ` +
          "write everything else without them",
      );
    }
    return { host: inner + length, from: from + 1, portsFrom: colon + 1 };
  }
  const colon = text.indexOf(":", from);
  if (colon === -1) throw noPorts(text, text.length);
  if (text.indexOf(":", colon + 1) !== -1) {
    throw new RuleError(
      text,
      from + 1,
      "saw more than one colon after the protocol; write an IPv6 address in " +
        "brackets, such as tcp:[fd00::1]:443 or tcp:[fd00::/8]:*",
    );
  }
  return { host: text.slice(from, colon), from, portsFrom: colon + 1 };
}

function noPorts(text: string, index: number): RuleError {
  return new RuleError(
    text,
    index + 1,
    'saw no ports, wanted ":" and ports; write :443, :1-1023, :80,443 or :*',
  );
}

function parseHost(host: HostText): HostPattern {
  if (host.host === "*") return { kind: "any" };
  const isAddress = /[:/%]/.test(host.host) || /^[0-9.]+$/.test(host.host);
  return isAddress
    ? { kind: "prefix", prefix: parsePrefix(host) }
    : { kind: "name", pattern: parseName(host) };
}

function parsePrefix({ text, host, from }: HostText): IpPrefix {
  const refuse = (wanted: string) =>
    new RuleError(text, from + 1, `saw "${clipped(host)}", wanted ${wanted}`);
  if (host.includes("%")) {
    throw refuse("an address without a zone; leave out what begins with %");
  }
  const slash = host.indexOf("/");
  const address = parseIpAddress(slash === -1 ? host : host.slice(0, slash));
  if (address === undefined) throw refuse("an IP address or ADDRESS/LENGTH");
  const bits = address.length * 8;
  if (slash === -1) {
    if (isUnspecified(address)) {
      throw refuse(
        `${host}/0 for every address, or the loopback address, which is ` +
          "where a dial to this one goes",
      );
    }
    return { address, length: bits };
  }
  if (address.length === 4 && host.includes(":")) {
    throw refuse("IPv4 written as IPv4, such as 10.0.0.0/8");
  }
  const prefix = parseIpPrefix(host);
  if (prefix === undefined) throw refuse(`a length from /0 to /${bits}`);
  if (address.some((byte, index) => byte !== prefix.address[index])) {
    // Taken literally it is wider than it looks, so it is refused.
    const network = `${formatIpAddress(prefix.address)}/${prefix.length}`;
    const one = formatIpAddress(address);
    throw refuse(`${network} for the network, or ${one} for the address`);
  }
  return prefix;
}

function parseName({ text, host, from }: HostText): Wildcard {
  const at = (index: number, problem: string) =>
    new RuleError(text, from + index + 1, problem);
  if (host === "") {
    throw at(0, "saw no host, wanted a name, an address or *");
  }
  const strange = /[^0-9a-zA-Z._*-]/u.exec(host);
  if (strange !== null) {
    const ascii = domainToASCII(host.replaceAll("*", ""));
    const remedy = ascii === "" || strange[0] <= "\x7f"
      ? "wanted letters, digits, dots, hyphens and *"
      : `wanted the name in ASCII (xn--…), as "${ascii}"`;
    throw at(strange.index, `saw "${strange[0]}", ${remedy}`);
  }
  const name = plainName(host);
  if (/^[0-9.*]+$/.test(name)) {
    throw at(
      0,
      `saw "${clipped(host)}", which looks like addresses; write a prefix ` +
        "such as 10.0.0.0/16, or * for every host",
    );
  }
  if (isIpv4Lookalike(name)) {
    throw at(
      0,
      `saw "${clipped(host)}", which some read as an IPv4 address because ` +
        "it ends in a number; write the address as 10.0.0.1",
    );
  }
  const empty = /^\.|\.\./.exec(name);
  if (empty !== null) {
    throw at(
      empty.index,
      'saw an empty label; for everything below a name write "*.name"',
    );
  }
  return new Wildcard(name);
}

/** @param from Index of the first character of the ports. */
function parsePorts(text: string, from: number): readonly PortRange[] {
  const list = text.slice(from);
  if (list === "*") return ALL_PORTS;
  let index = from;
  return list.split(",").map((item) => {
    const column = index + 1;
    index += item.length + 1;
    const match = /^([0-9]{1,5})(?:-([0-9]{1,5}))?$/.exec(item.trim());
    const first = Number(match?.[1]);
    const last = Number(match?.[2] ?? match?.[1]);
    if (match === null || first < 1 || last > 65_535) {
      throw new RuleError(
        text,
        column,
        `saw "${clipped(item)}", wanted a port from 1 to 65535, a range such ` +
          "as 8000-8100, or * for all",
      );
    }
    if (first > last) {
      throw new RuleError(
        text,
        column,
        `saw "${item}", wanted the lower port first; write ${last}-${first}`,
      );
    }
    return { first, last };
  });
}

/** @param from Index of the path's first character. */
function parsePathRule(text: string, from: number): Rule {
  const path = text.slice(from);
  const at = (index: number, problem: string) =>
    new RuleError(text, from + index + 1, problem);
  if (!/^(?:[/@].|\*)/s.test(path)) {
    throw at(
      0,
      `saw "${clipped(path)}", wanted an absolute path, @ and an abstract ` +
        "name, or what begins with *",
    );
  }
  // A path that is spelled in a roundabout way would never match: targets are
  // compared as they are, and only plain ones are served.
  const strange = ROUNDABOUT.exec(path);
  if (!path.startsWith("@") && strange !== null) {
    throw at(
      strange.index,
      `saw "${
        strange[0]
      }", wanted a path without ".", "..", "//" and without ` +
        '"/" at the end; write where it leads',
    );
  }
  return { kind: "path", text, pattern: new Wildcard(path) };
}

/** A rule's text in a message. */
const RULE_LENGTH_SHOWN = 80;

/** Characters that a plain absolute path never has. */
// deno-lint-ignore no-control-regex -- NUL ends a path in the kernel
export const ROUNDABOUT = /\/\.{0,2}(?=\/|$)|\x00/;
