/**
 * Addresses as people type them: `host:port`, `[::1]:22`, and the longer form
 * that says what `forward` is to forward; and which flag to change when one of
 * them cannot be opened.
 *
 * @module
 */

import { hostPort, withoutBrackets } from "../../proto/peer/host_port.ts";
import { withoutTokens } from "../../proto/identity/join_token.ts";
import { unusable, UsageError } from "./usage_error.ts";
import { parseWholeNumber } from "./go_values.ts";
import type { ListenAddress } from "../../net/listen/listeners.ts";
import { ListenError } from "../../net/bind/listen_error.ts";

/** A place to connect to or to listen on. */
export interface HostPort {
  /** Without brackets. */
  readonly host: string;
  readonly port: number;
}

/** One thing to forward. */
export interface ForwardSpec {
  /** Loopback by default; port 0: any free one. */
  readonly listen: HostPort;
  readonly target: HostPort;
  /** The node whose agent dials; absent: whichever serves the target. */
  readonly node?: string;
}

/** A host: a name, an IPv4 address, or anything in brackets. */
const HOST = String.raw`(?:\[[^\[\]\s]+\]|[^\[\]:@\s/]+)`;
const HOST_PORT = new RegExp(`^(${HOST}):(\\d+)$`);
const FORWARD = new RegExp(
  `^(?:(${HOST}|\\*)?:)?(\\d+):(${HOST}):(\\d+)(?:@([^@\\s]+))?$`,
);

const FORWARD_FORM = "[BIND:]PORT:HOST:PORT[@NODE], such as " +
  "5432:db.internal:5432 or 127.0.0.1:8080:[fd00::7]:80@node7";

/**
 * Reads `host:port`.
 *
 * @param what For the message, such as `--server`.
 * @throws {UsageError} One line.
 */
export function parseHostPort(what: string, text: string): HostPort {
  return parsePlace(what, text, 1);
}

/** Servers that are named in one place. */
export const SERVERS_MAX = 16;

/** A comma that cannot be part of a path: a path or a port follows. */
const BETWEEN_SERVERS = /,\s*(?=unix:|[^,/]*(?:,|$))/;

/**
 * Reads `ADDRESS[,ADDRESS…]`: each address once, as it stands there.
 *
 * @throws {UsageError} One line.
 */
export function parseServerList(text: string): readonly string[] {
  const servers = new Set(text.split(BETWEEN_SERVERS));
  if (servers.has("")) {
    throw unusable("--server", text, "an address on either side of each comma");
  }
  if (servers.size <= SERVERS_MAX) return [...servers];
  throw new UsageError(
    `Cannot use --server: it names ${servers.size} servers, wanted ` +
      `${SERVERS_MAX} at most`,
  );
}

/** The default port on which agents and nodes find a server. */
const AGENT_PORT = 8091;

/**
 * Reads `host` or `host:port` of a server's port for agents.
 *
 * @throws {UsageError} One line.
 */
export function parseAgentServer(text: string): HostPort {
  // A token in the wrong place reads like a name, and must be refused unread.
  const isHostOnly = new RegExp(`^${HOST}$`).test(text) &&
    withoutTokens(text) === text;
  return parseHostPort("--server", isHostOnly ? `${text}:${AGENT_PORT}` : text);
}

/**
 * Where a flag has something listen; absent: nowhere.
 *
 * @param wanted Hosts that will do, for the message.
 * @param least 0: port 0 is any free one.
 * @throws {UsageError} One line.
 */
export function placeOf(
  flag: string,
  text: string,
  isWanted: (host: string) => boolean,
  wanted: string,
  least: 0 | 1 = 1,
): ListenAddress | undefined {
  if (text === "") return undefined;
  const { host: hostname, port } = parsePlace(flag, text, least);
  if (isWanted(hostname)) return { hostname, port };
  throw unusable(flag, text, wanted);
}

/** What people type in place of it, as far as it can be told. */
const HINTS: readonly (readonly [form: RegExp, hint: string])[] = [
  [
    /^[0-9a-f.]*(?::[0-9a-f.]*){2,}$/i,
    "; an IPv6 address stands in brackets, and a port behind them: [::1]:22",
  ],
  [/^[a-z][a-z0-9+.-]*:\/\//i, "; leave out what ends in ://, and any path"],
];

function parsePlace(what: string, text: string, least: 0 | 1): HostPort {
  const match = HOST_PORT.exec(text);
  if (match === null) {
    const hint = HINTS.find(([form]) => form.test(text))?.[1] ?? "";
    throw unusable(what, text, `HOST:PORT${hint}`);
  }
  const port = portOf(what, text, match[2]!, least);
  return { host: withoutBrackets(match[1]!), port };
}

/**
 * Reads `[BIND:]PORT:HOST:PORT[@NODE]`.
 *
 * @throws {UsageError} One line.
 */
export function parseForwardSpec(text: string): ForwardSpec {
  const match = FORWARD.exec(text);
  if (match === null) {
    throw new UsageError(`Cannot forward "${text}": wanted ${FORWARD_FORM}`);
  }
  const [, bind, listenPort, host, port, node] = match;
  const what = "this forward";
  return {
    listen: {
      host: bindHost(bind),
      port: portOf(what, text, listenPort!, 0),
    },
    target: {
      host: withoutBrackets(host!),
      port: portOf(what, text, port!, 1),
    },
    ...(node === undefined ? {} : { node }),
  };
}

/** Writes `host:port`, with brackets where they are needed. */
export function formatHostPort({ host, port }: HostPort): string {
  return hostPort(host, port);
}

/**
 * As with `ssh -L`: an empty host means loopback, an asterisk all interfaces.
 */
function bindHost(bind: string | undefined): string {
  if (bind === undefined || bind === "") return "127.0.0.1";
  return bind === "*" ? "0.0.0.0" : withoutBrackets(bind);
}

function portOf(
  what: string,
  text: string,
  digits: string,
  least: 0 | 1,
): number {
  const port = parseWholeNumber(digits);
  if (port !== undefined && port >= least && port <= 65_535) return port;
  throw new UsageError(
    `Cannot use ${what}: saw port ${digits} in "${text}", wanted ${least} ` +
      "to 65535",
  );
}

/**
 * A flag with its address or path; and the flag of the address alone, if the
 * port has another.
 */
export type ListenFlag = readonly [
  flag: string,
  at: string | ListenAddress,
  addressFlag?: string,
];

/**
 * Starts something; a {@linkcode ListenError} that comes of it also names the
 * flags that hold its address.
 */
export async function namingFlags<Started>(
  flags: readonly ListenFlag[],
  start: () => Promise<Started> | Started,
): Promise<Started> {
  try {
    return await start();
  } catch (error) {
    if (!(error instanceof ListenError)) throw error;
    const { problem, address, message } = error;
    const names = flags
      .filter(([, at]) => addressOf(at) === address)
      .map(([flag, , addressFlag]) =>
        problem === "bad-address" ? addressFlag ?? flag : flag
      );
    if (names.length === 0) throw error;
    const hint = `${message}; change ${names.join(" or ")}`;
    throw new ListenError(problem, address, hint, { cause: error });
  }
}

function addressOf(at: ListenFlag[1]): string {
  return typeof at === "string" ? at : hostPort(at.hostname, at.port);
}

/** The address that two flags say. */
export function listenAt<Host extends string, Port extends string>(
  flags: Readonly<Record<Host, string> & Record<Port, number>>,
  host: Host,
  port: Port,
): ListenAddress {
  return { hostname: flags[host], port: flags[port] };
}
