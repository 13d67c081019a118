/**
 * The gRPC methods that are Konnectivity's, by their paths; ours are in the
 * modules made of `.proto` files.
 *
 * @module
 */

/** Opens one conduit; without a package, as Konnectivity has it. */
export const PROXY_PATH = "/ProxyService/Proxy";

/** Carries a link of the packets carrier; as Konnectivity has it, too. */
export const CONNECT_PATH = "/AgentService/Connect";
