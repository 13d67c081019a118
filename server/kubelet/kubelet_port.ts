/**
 * The port where callers talk to kubelets as if these were near: what
 * yurttunnel calls its interceptor.
 *
 * Clients need a certificate of the callers' CA; the policy decides what they
 * may reach. The kubelet sees our certificate, not theirs.
 *
 * @module
 */

import type { CountingTools } from "../../platform/program/tools.ts";
import { connectKubernetes } from "../../neighbours/kubernetes/connect.ts";
import type { BoundListener } from "../../net/listen/listeners.ts";
import { listenCertified } from "../../net/listen/secure_listener.ts";
import type { ConnectionLimiter } from "../../net/admission/connection_limiter.ts";
import { unawaited } from "../../platform/errors/internal_errors.ts";
import { lineKey } from "../../platform/log/line_key.ts";
import type { MetricRegistry } from "../../platform/metrics/metrics.ts";
import type { Stream } from "../../net/stream/stream.ts";
import type { Credentials } from "../../net/tls/trust/credentials.ts";
import type { Dialer } from "../routing/dialer.ts";
import { refusalBytes, turnAway } from "../../net/http1/refusal.ts";
import type { KubeletOptions, TlsLimits } from "../options.ts";
import {
  type ExchangeObserver,
  type ExchangeOptions,
  KubeletExchange,
} from "./kubelet_exchange.ts";
import type { KubeletRefusal } from "./exchange_errors.ts";
import { dialKubelet } from "./kubelet_dial.ts";
import { NodeLookups } from "./kubelet_route.ts";
import type { PeerIdentity } from "../../proto/peer/peer_identity.ts";
import { NODE_ORGANIZATION } from "../identity/leaf_certificates.ts";
import { SERVER_PREFIX } from "../metrics/metric_families.ts";

/** Most connections at once; one that waits costs some 140 KB with both ends. */
export const EXCHANGES_MAX = 2_000;

/** What the port takes from the server. */
export interface KubeletEnvironment extends CountingTools {
  readonly tls: TlsLimits;
  /** Counts callers along with everybody else. */
  readonly limiter: ConnectionLimiter;
  readonly dial: Dialer["dial"];
  /** Whether an agent serves this very name or address now. */
  isServed(host: string): boolean;
  /** Shown to callers, whose CA it names. */
  readonly callers: Credentials;
  /** Shown to kubelets, whose CA it names. */
  readonly kubelets: Credentials;
  /** A client was turned away before it could send a request. */
  turnedAway(): void;
}

/** See the module description. */
export class KubeletPort {
  readonly #exchange: ExchangeOptions;
  readonly #lookups: NodeLookups | undefined;
  readonly #exchanges = new Set<KubeletExchange>();
  readonly #listener: BoundListener;
  #isOver = false;

  /**
   * Opens the port.
   *
   * @throws {ListenError | NeighbourConfigError}
   */
  constructor(
    options: KubeletOptions,
    private readonly environment: KubeletEnvironment,
  ) {
    const { log, timers, dial, kubelets } = environment;
    const { lookups, localhostPorts } = options;
    this.#lookups = lookups &&
      new NodeLookups(connectKubernetes(lookups, timers), timers);
    const dialing = {
      timers,
      dial,
      credentials: () => kubelets.current,
      isUnverified: options.kubeletCaFile === undefined,
    };
    this.#exchange = {
      timers,
      routing: {
        isServed: (host) => environment.isServed(host),
        localhostPorts: new Set(localhostPorts),
        lookups: this.#lookups,
      },
      connect: (route, caller, signal) =>
        dialKubelet(route, caller, signal, dialing),
      observer: observerOf(environment),
    };
    this.#listener = listenCertified({
      ...options.address,
      ...environment.tls,
      credentials: environment.callers,
      alpn: ["http/1.1"],
      limiter: environment.limiter,
    }, {
      onConnection: (socket) => {
        // The handshake may have outlived the port.
        if (this.#isOver) return socket.close();
        unawaited("socket", this.serve(socket), () => socket.close());
      },
      onRefused: ({ message }) => {
        environment.turnedAway();
        log.event(message, {}, lineKey(message));
      },
      onProblem: (line) => log.warn(line, { code: "TUN513" }),
    });
    if (!dialing.isUnverified) return;
    log.warn(
      "kubelets' certificates are not verified: a program that answers in a " +
        "kubelet's place on a node reads and writes what callers say to it",
      { code: "TUN333" },
    );
  }

  get address(): string {
    return this.#listener.address;
  }

  /** Admits no new client, and ends the running connections. */
  stop(reason: string): void {
    this.#listener.close();
    this.#isOver = true;
    for (const exchange of this.#exchanges) exchange.stop(reason);
    this.#lookups?.[Symbol.dispose]();
  }

  /** Serves one connection whose caller is known. */
  async serve(socket: Stream): Promise<void> {
    const refusal = this.#refusalFor(socket);
    if (refusal !== undefined) {
      this.environment.turnedAway();
      this.environment.log.event(
        `${socket.remoteAddress}: ${refusal.message}`,
      );
      const { status, message } = refusal;
      return await turnAway(socket, refusalBytes(status, message));
    }
    const exchange = new KubeletExchange(socket, this.#exchange);
    this.#exchanges.add(exchange);
    try {
      await exchange.run();
    } finally {
      this.#exchanges.delete(exchange);
    }
  }

  #refusalFor({ identity }: Stream): KubeletRefusal | undefined {
    const message = nodeRefusal(identity);
    if (message !== undefined) return { status: 403, message };
    if (this.#exchanges.size < EXCHANGES_MAX) return undefined;
    return {
      status: 503,
      message: `Cannot serve more than ${EXCHANGES_MAX} requests at once`,
    };
  }
}

function observerOf(
  { log, metrics }: KubeletEnvironment,
): ExchangeObserver {
  const counts = countRequests(metrics);
  return {
    began: ({ path }) => counts.began(path),
    // The path without its query, which contains commands and their input.
    ended: ({ method, path }, status, tookMs) => {
      counts.ended(path, status);
      log.detail("kubelet request ended", {
        method,
        path,
        status,
        ms: Math.round(tookMs),
      });
    },
    refused: ({ remoteAddress }, { status, message }, isDial) => {
      // What became of a dial, the dialer says.
      if (isDial) return;
      const line = `kubelet request of ${remoteAddress} refused with ` +
        `${status}: ${message}`;
      log.event(line, {}, lineKey(line));
    },
  };
}

/** Kubernetes' nodes, and those that joined us. */
const NODE_GROUPS: ReadonlySet<string> = new Set([
  "system:nodes",
  NODE_ORGANIZATION,
]);

/**
 * Why `caller` may make no request at all; `undefined`: it may.
 *
 * Nodes are no callers. In many clusters one CA signs kubelets' certificates
 * and kube-apiserver's alike, and an operator who names it as the callers' CA
 * must not thereby allow every node to run commands on all others.
 */
function nodeRefusal(
  { certificate, commonName }: PeerIdentity,
): string | undefined {
  const group = certificate?.organizations.find((name) =>
    NODE_GROUPS.has(name)
  );
  if (group === undefined) return undefined;
  return `Cannot serve CN=${commonName}: its certificate is a node's ` +
    `(O=${group}), and nodes have no say over each other`;
}

/** First parts of kubelets' paths (its `server.go`); all others are `other`. */
const KINDS: ReadonlySet<string> = new Set([
  ...["attach", "checkpoint", "configz", "containerLogs", "debug", "exec"],
  ...["healthz", "logs", "metrics", "pods", "portForward", "run"],
  ...["runningpods", "stats"],
]);

/** The purpose of a request, as one of few words. */
export function requestKindOf(path: string): string {
  const first = path.split("/", 2)[1] ?? "";
  return KINDS.has(first) ? first : "other";
}

/**
 * What the kubelet front end counts: requests by purpose and by answer. Neither
 * label is a caller's text, so there are few.
 */
export function countRequests(
  registry: MetricRegistry,
): { began(path: string): void; ended(path: string, status: number): void } {
  const requests = registry.labelled(
    "counter",
    `${SERVER_PREFIX}kubelet_requests_total`,
    "Requests to kubelets that are over, by what they are for and the first " +
      "digit of the status; none when the caller left before there was one.",
    ["kind", "status"],
  );
  const inFlight = registry.labelled(
    "gauge",
    `${SERVER_PREFIX}kubelet_requests_in_flight`,
    "Requests to kubelets under way, by what they are for.",
    ["kind"],
  );
  return {
    began: (path) => inFlight.with(requestKindOf(path)).add(),
    // 0: there was none.
    ended: (path, status) => {
      const kind = requestKindOf(path);
      inFlight.with(kind).add(-1);
      const text = status === 0 ? "none" : `${Math.floor(status / 100)}xx`;
      requests.with(kind, text).add();
    },
  };
}
