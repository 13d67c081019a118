/**
 * Names that Envoy and gRPC know parts of resources by, besides their types.
 *
 * @module
 */

/** Where a cluster has its `HttpProtocolOptions`. */
export const HTTP_OPTIONS_KEY =
  "envoy.extensions.upstreams.http.v3.HttpProtocolOptions";

/**
 * Where an endpoint's `typedFilterMetadata` has the address of its proxy, an
 * `Address`. Endpoints without are dialed directly.
 */
export const PROXY_ADDRESS_KEY =
  "envoy.http11_proxy_transport_socket.proxy_address";

/**
 * The extension that leaves out endpoints that were tried already; it has no
 * settings.
 */
export const PREVIOUS_HOSTS = "envoy.retry_host_predicates.previous_hosts";

/** The extension that leaves out priorities that were tried already. */
export const PREVIOUS_PRIORITIES = "envoy.retry_priorities.previous_priorities";
