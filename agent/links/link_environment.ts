/**
 * What links take from the machine that the agent runs on, and from whoever
 * starts it beside its options.
 *
 * @module
 */

import type { ProxyEnvironment } from "../../net/dial/proxy_environment.ts";
import type { Log } from "../../platform/log/log.ts";
import type { LinkIdentity } from "../identity/link_identity.ts";

export interface LinkEnvironment {
  readonly log: Log;
  /** `HTTPS_PROXY` and `NO_PROXY`. */
  readonly proxy: ProxyEnvironment;
  /** In place of files; see `startJoinedAgent` and `startKubernetesAgent`. */
  readonly identity?: LinkIdentity;
  /** Uniform in [0, 1); the platform's when absent. */
  readonly random?: () => number;
}
