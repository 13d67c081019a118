/**
 * What an agent takes from the machine that it runs on, and from whoever starts
 * it beside its options.
 *
 * @module
 */

import type { LinkEnvironment } from "./links/link_upstream.ts";
import type { Program } from "../net/program/program.ts";
import type { ServiceProxy } from "../services/proxy/service_proxy.ts";
import type { ShowAgent } from "./shown_agent.ts";
import type { Relay, RelayWays } from "./relay/relay.ts";

export interface AgentEnvironment extends LinkEnvironment {
  /** Makes what people see of it. */
  readonly show: ShowAgent;
  /** Makes the service proxy that is to run beside; absent: there is none. */
  readonly openProxy?: (
    program: Program,
    changed: () => void,
  ) => ServiceProxy;
  /** Opens the relays that the options ask for. */
  readonly openRelay?: (
    ways: RelayWays,
    program: Program,
    loadChanged: () => void,
  ) => Relay;
}
