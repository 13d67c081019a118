/**
 * What an agent takes from the machine that it runs on, and from whoever starts
 * it beside its options.
 *
 * @module
 */

import type { Log } from "../platform/log/log.ts";
import type { MetricRegistry } from "../platform/metrics/metrics.ts";
import type { ProxyEnvironment } from "../net/dial/proxy_environment.ts";
import type { LinkIdentity } from "./identity/link_identity.ts";
import type { ServiceProxy } from "./proxy/service_proxy.ts";
import type { Relay, RelayEnvironment } from "./relay/relay.ts";

/** See the module description. */
export interface AgentEnvironment {
  readonly log: Log;
  /** `HTTPS_PROXY` and `NO_PROXY`. */
  readonly proxy: ProxyEnvironment;
  /** In place of files; see `startJoinedAgent` and `startKubernetesAgent`. */
  readonly identity?: LinkIdentity;
  /** Uniform in [0, 1); the platform's when absent. */
  readonly random?: () => number;
  /** Makes the service proxy that is to run beside; absent: there is none. */
  readonly openProxy?: (metrics: MetricRegistry) => ServiceProxy;
  /** Opens the relays that the options ask for. */
  readonly openRelay?: (environment: RelayEnvironment) => Relay;
}
