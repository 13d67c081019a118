/**
 * The gRPC methods of links and frontends, by their paths.
 *
 * @module
 */

import { LINK_METHODS } from "./link_messages.ts";

/** Opens one conduit; without a package, as Konnectivity has it. */
export const PROXY_PATH = "/ProxyService/Proxy";

/** Carries a link of the packets carrier; as Konnectivity has it, too. */
export const CONNECT_PATH = "/AgentService/Connect";

/** Carries the hellos of a link of the streams carrier; see `link.proto`. */
export const CONTROL_PATH: string = LINK_METHODS.control;
