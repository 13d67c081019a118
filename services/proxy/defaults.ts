/**
 * The defaults of a service proxy.
 *
 * @module
 */

import { EJECTION } from "./balancer/backend.ts";
import type { ConnectionDefaults } from "./listeners/proxied_port.ts";
import type { ServiceProxyOptions } from "./service_proxy.ts";

/** Ports where services are found that do not say it. */
export const PORT_RANGE = { first: 20_000, last: 29_999 } as const;

/** Of the tries of one connection; kube-proxy's. */
export const DIAL_TIMEOUTS_MS: readonly number[] = [250, 500, 1_000, 2_000];

/** kube-proxy's first; its later 250 ms ended DNS queries under way. */
export const UDP_IDLE_MS = 60_000;

/** Of connections whose service was removed. */
export const SERVICE_DRAIN_MS = 600_000;

/**
 * How long a half-closed connection may be silent: five times what Linux gives
 * a half-closed connection whose program is gone (`tcp_fin_timeout`), half of
 * what nginx gives any (`proxy_timeout`).
 */
export const HALF_CLOSED_IDLE_MS = 300_000;

/** The default of services, when no flag says otherwise. */
export const CONNECTION_DEFAULTS: ConnectionDefaults = {
  onEndpointRemoved: "stay",
  onEndpointDown: "stay",
  endpointDrainMs: 30_000,
  idleTimeoutMs: 0,
  halfClosedTimeoutMs: HALF_CLOSED_IDLE_MS,
  userTimeoutMs: 0,
  ejection: EJECTION,
};

/** All but where services come from. */
export const PROXY_DEFAULTS: Omit<ServiceProxyOptions, "sources"> = {
  addresses: { kind: "ports", host: "127.0.0.1", ...PORT_RANGE },
  balance: "round-robin",
  dialTimeoutsMs: DIAL_TIMEOUTS_MS,
  udpIdleMs: UDP_IDLE_MS,
  drainMs: SERVICE_DRAIN_MS,
  defaults: CONNECTION_DEFAULTS,
};
