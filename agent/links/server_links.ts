/**
 * An agent's links: how they are made, how many are kept, and how they are
 * logged and counted.
 *
 * @module
 */

import { tunnelCodeOf } from "../../proto/codes/codes.ts";
import type { ServerAddress } from "../../net/dial/server_addresses.ts";
import { readToken } from "../../neighbours/kubernetes/access.ts";
import { withPacketLines } from "../../platform/log/connection_log.ts";
import { systemTimers } from "../../platform/time/system_timers.ts";
import { hostOf, hostPort, portOf } from "../../proto/peer/host_port.ts";
import type { Credentials } from "../../net/tls/trust/credentials.ts";
import { GIVE_CA } from "../../net/tls/trust/tls_errors.ts";
import type { DialHandler } from "../../proto/link/dial_handler.ts";
import { NO_IDENTIFIERS } from "../../proto/peer/identifiers.ts";
import type { ReceiveBudget } from "../../proto/streams/receive_budget.ts";
import type { AgentMetrics } from "../metrics/agent_metrics.ts";
import type { Announcement } from "./announcement.ts";
import type { AgentOptions } from "../options.ts";
import { Connector } from "./connector.ts";
import {
  AgentLinks,
  type AgentLinksOptions,
  type LinkAddress,
} from "./agent_links.ts";
import { type LinkEnvironment, linkUpstream } from "./link_upstream.ts";
import type { Log } from "../../platform/log/log.ts";
import type { Clock } from "../../proto/sync/clock.ts";
import { isDefinite } from "../identity/enrolment_error.ts";

/** Longest text of a server that is logged. */
const MESSAGE_LENGTH_MAX = 2_000;

/** The tools of the agent. */
interface ServerLinksParts {
  readonly options: AgentOptions;
  readonly environment: LinkEnvironment;
  readonly credentials: Credentials;
  readonly receiveBudget: ReceiveBudget;
  readonly metrics: AgentMetrics;
  readonly announcement: Announcement;
  /** Of this process; see `peer_identity.ts`. */
  readonly instanceId: string;
  readonly onDial: DialHandler;
  /** How many servers to link to, when a server has told their number. */
  serversWanted(reported: number): number;
  /** More servers are linked, or fewer. */
  changed(): void;
}

/** A node that has joined was given no CA, and can give none. */
const JOIN_AGAIN = "this is not the server that this node has joined, or its " +
  "authority has changed meanwhile: correct --server, or join again with a " +
  "new token (tunnel join TOKEN --server HOST:PORT --again)";

/** Prepares the links; none is made before `start`. */
export function serverLinks(parts: ServerLinksParts): AgentLinks {
  const { options, environment, metrics } = parts;
  const { server, sync } = options;
  const { log } = environment;
  const attempts = new AttemptLog(log, systemTimers);
  /** By server: two lines about one server would look like a mistake. */
  const links = new Map<string, number>();
  const count = (serverId: string, change: 1 | -1) => {
    const now = (links.get(serverId) ?? 0) + change;
    if (now === 0) links.delete(serverId);
    else links.set(serverId, now);
    return now;
  };
  return new AgentLinks({
    addresses: addressesOf(parts),
    learned: sync.learnsServers === false ? undefined : learnedOf(parts),
    timers: systemTimers,
    random: environment.random ?? Math.random,
    linksPerServer: server.links,
    intervalMs: sync.intervalMs,
    intervalCapMs: sync.intervalCapMs,
    serversWanted: (reported) => parts.serversWanted(reported),
    forever: sync.forever,
    observer: {
      linked: ({ serverId, carrier, serverCount }, address) => {
        attempts.linked(address);
        log.event("linked to server", {
          server: serverId,
          address,
          carrier,
          servers: serverCount,
          links: count(serverId, 1),
        });
      },
      lost: ({ serverId }, reason) => {
        metrics.serverFailed();
        const links = count(serverId, -1);
        log.event(`link lost: ${reason}`, { server: serverId, links });
      },
      failed: (reason, retryMs, error, address) => {
        metrics.serverFailed();
        const words = environment.identity === undefined
          ? reason
          : reason.replaceAll(GIVE_CA, JOIN_AGAIN);
        attempts.failed(words, retryMs, error, address);
      },
      counted: (linked, known) => {
        metrics.servers(linked, known);
        attempts.counted(linked);
        parts.changed();
      },
      haveOneId: (serverId, addresses) =>
        log.warn(
          `the servers at ${addresses.join(" and ")} have one id, ` +
            `${
              JSON.stringify(serverId.slice(0, 100))
            }: agents that find them behind one address ` +
            "link to one of them only; give each its own --server-id",
          { code: "TUN313" },
        ),
    },
  });
}

/**
 * Each address by itself; where others say at each attempt where servers are,
 * these are ways to the same ones, and take turns.
 */
function addressesOf(parts: ServerLinksParts): LinkAddress[] {
  const { options, environment } = parts;
  const { addresses } = options.server;
  const groups = environment.identity?.findServers === undefined
    ? addresses.map((address) => [address])
    : [addresses];
  const named = new Map(groups.map((group) => [
    group.map(({ host, port }) => hostPort(host, port)).join(", "),
    group,
  ]));
  return [...named].map(([name, group]) => linkAddressOf(parts, name, group));
}

/**
 * Addresses that servers have said. A server there shows the certificate that one
 * at a given address shows: that may be for the name of a balancer.
 */
function learnedOf(
  parts: ServerLinksParts,
): NonNullable<AgentLinksOptions["learned"]> {
  const { identity } = parts.environment;
  const names = parts.options.server.addresses.map(({ host }) => host);
  const known = identity?.learnedServers;
  return {
    addressOf({ address }) {
      const place = { host: hostOf(address), port: portOf(address) };
      return linkAddressOf(parts, address, [place], names);
    },
    known,
    changed: (servers) => identity?.keepServers?.(servers),
  };
}

function linkAddressOf(
  parts: ServerLinksParts,
  name: string,
  addresses: readonly ServerAddress[],
  otherNames?: readonly string[],
): LinkAddress {
  const { options, environment, credentials, metrics, announcement } = parts;
  const { agentId, identifiers, server, messageBytesMax } = options;
  const { tokenFile } = server;
  const { log, identity } = environment;
  const upstream = linkUpstream(
    addresses,
    credentials,
    environment,
    otherNames,
  );
  const connector = new Connector({
    token: tokenFile === undefined ? undefined : () => readToken(tokenFile),
    agentId,
    instanceId: parts.instanceId,
    onDuplicate: (message) =>
      log.warn(message.slice(0, MESSAGE_LENGTH_MAX), { code: "TUN313" }),
    identifiers: identifiers ?? NO_IDENTIFIERS,
    services: () => announcement.services,
    onServicesRefused: (refused) => announcement.refused(refused),
    notAnnounced: (serverId) => announcement.unheard(serverId),
    alpnProtocols: server.alpnProtocols,
    carriers: server.carriers ?? ["streams", "packets"],
    authority: upstream.authority,
    keepaliveMs: server.keepaliveMs,
    messageBytesMax,
    receiveBudget: parts.receiveBudget,
    timers: systemTimers,
    observer: withPacketLines(metrics.packetObserver(), log, "server"),
    onDial: parts.onDial,
    openStream: (alpn, use, signal) => upstream.connect(use, signal, alpn),
    onAuthorities: identity?.trust &&
      (async (bundle) => await identity.trust?.(bundle) ?? []),
    fellBack: (serverId) => {
      metrics.fellBack();
      log.warn(
        "the link fell back to Konnectivity's protocol although the server " +
          "is ours: something on the way changes ALPN; a stalled connection " +
          "may hold up others",
        { code: "TUN210", server: serverId },
      );
    },
  });
  return {
    name,
    connect: (events, signal) => connector.connect(events, signal),
  };
}

/** So long without a link is more than a server's restart. */
export const OUTAGE_MS = 10_000;

/**
 * What the log says of attempts to link that failed.
 *
 * Networks that are bad recover by themselves and are logged as events. A refusal stays
 * until a person does something, so it is a warning, which no `--v` hides; so is
 * that no server could be reached for a while, and that one can again. What comes
 * again unchanged is for the log to gather, for each address by itself.
 */
export class AttemptLog {
  /** By address, the last logged refusal. */
  readonly #refusals = new Map<string, string>();
  /** Since when there is no link; `undefined` while there is one. */
  #unlinkedMs: number | undefined;
  /** The missing link was logged as a warning. */
  #isOutage = false;
  /** Links that came: what fails behind one is news. */
  #links = 0;

  constructor(private readonly log: Log, private readonly clock: Clock) {
    this.#unlinkedMs = clock.now();
  }

  /** An attempt came to something: the next refusal is news. */
  linked(address: string): void {
    this.#refusals.delete(address);
    this.#links++;
  }

  /** @param servers How many are linked now. */
  counted(servers: number): void {
    if (servers === 0) {
      this.#unlinkedMs ??= this.clock.now();
      return;
    }
    if (this.#isOutage) {
      this.log.warn(`a server is linked again, after ${this.#outageText}`, {
        code: "TUN403",
      });
    }
    this.#isOutage = false;
    this.#unlinkedMs = undefined;
  }

  /** @param error What the attempt rejected with, if it did. */
  failed(
    reason: string,
    retryMs: number,
    error: unknown,
    address: string,
  ): void {
    const line = `${reason}; trying again in ${Math.round(retryMs)} ms`;
    const key = `link ${this.#links} ${address} ${reason}`;
    if (isDefinite(error) && this.#refusals.get(address) !== reason) {
      this.#refusals.set(address, reason);
      const code = tunnelCodeOf(error) ?? "TUN320";
      return this.log.warn(line, { code }, key);
    }
    this.#isOutage ||= this.#unlinkedForMs >= OUTAGE_MS;
    if (!this.#isOutage) {
      const code = tunnelCodeOf(error) ?? "TUN403";
      return this.log.event(line, { code }, key);
    }
    this.log.warn(
      `no server is linked for ${this.#outageText}: ${line}`,
      { code: "TUN402" },
      key,
    );
  }

  get #unlinkedForMs(): number {
    const sinceMs = this.#unlinkedMs;
    return sinceMs === undefined ? 0 : this.clock.now() - sinceMs;
  }

  get #outageText(): string {
    return `${Math.round(this.#unlinkedForMs / 1000)} s`;
  }
}
