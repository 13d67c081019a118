/**
 * The floors of the house: every folder, lowest first. A folder imports only
 * what stands above it in this list, which is below it in the house;
 * ARCHITECTURE.md tells what each is.
 *
 * @module
 */

/** Rooms on one line must not meet. A room holds what no longer name claims. */
export const FLOORS: readonly (readonly string[])[] = [
  ["std"],
  // What both ends agree on; no socket, no file, no clock.
  ["proto/bytes", "proto/sync", "proto/codes"],
  ["proto/frames", "proto/hpack"],
  ["proto/streams"],
  ["proto/grpc"],
  ["proto/identity"],
  ["proto/peer"],
  ["proto/packets", "proto/xds"],
  ["proto/transfer"],
  ["proto/link", "proto/admin"],
  // The machine, without its sockets.
  ["platform/text"],
  ["platform/documents"],
  ["platform/errors"],
  ["platform/time"],
  ["platform/metrics"],
  ["platform/log"],
  ["platform/conduits"],
  ["platform/files"],
  ["platform/pki"],
  ["platform/process"],
  ["platform/tracing"],
  ["platform/reload"],
  // Who may; not how.
  ["policy"],
  // From the C library to a connection that somebody may use.
  ["net/libc"],
  ["net/buffers"],
  ["net/poll"],
  ["net/stream"],
  ["net/bind"],
  ["net/datagram"],
  ["net/names"],
  ["net/tls/trust"],
  ["net/tls/openssl", "net/tls/node"],
  ["net/tls"],
  ["net/http1"],
  ["net/http2"],
  ["net/admission"],
  ["net/admin"],
  ["net/listen"],
  ["net/handover"],
  ["net/dial"],
  ["net/channel"],
  ["neighbours/kubernetes", "neighbours/etcd"],
  // Services and endpoints.
  ["catalog/model"],
  ["catalog/sources/document"],
  ["catalog/sources/kubernetes", "catalog/sources/etcd"],
  ["catalog/sources"],
  ["catalog"],
  // Who wants in.
  ["client/ads"],
  ["client/admin"],
  ["client"],
  ["client/doctor"],
  ["client/adsc", "client/bench"],
  // The control network.
  ["server/metrics"],
  ["server/options.ts"],
  ["server/state"],
  ["server/links"],
  ["server/strategies"],
  ["server/identity"],
  ["server/policy"],
  ["server/cluster"],
  ["server/peers"],
  ["server/routing"],
  ["server/forwarding"],
  ["server/discovery/view"],
  ["server/discovery/generate"],
  ["server/discovery/subscriptions"],
  ["server/discovery/access"],
  ["server/discovery/streams"],
  ["server/discovery/status"],
  ["server/discovery/push", "server/discovery/membership"],
  ["server/discovery/serving"],
  ["server/frontends"],
  ["server/kubelet"],
  ["server/admin"],
  ["server/doctor"],
  ["server/dashboard"],
  ["server/assembly"],
  ["server"],
  // The node.
  ["agent/options.ts"],
  ["agent/leases"],
  ["agent/dial"],
  ["agent/metrics"],
  ["agent/identity"],
  ["agent/links"],
  ["agent/doctor"],
  ["agent/relay"],
  ["agent/proxy/balancer"],
  ["agent/proxy/endpoints"],
  ["agent/proxy/listeners"],
  ["agent/proxy/addresses"],
  ["agent/proxy/health"],
  ["agent/proxy/sessions"],
  ["agent/proxy/ports"],
  ["agent/proxy/dns"],
  ["agent/proxy/ads"],
  ["agent/proxy/status"],
  ["agent/admin"],
  ["agent/proxy"],
  ["agent"],
  // The command line.
  ["cli/flags"],
  ["cli/program"],
  ["cli/ask"],
  [
    "cli/adsc",
    "cli/agent",
    "cli/bench",
    "cli/demo",
    "cli/proxy",
    "cli/server",
    "cli/config",
  ],
  ["cli/yurttunnel_agent", "cli/doctor"],
  ["cli/support"],
  ["cli/reference"],
  ["cli"],
  ["main.ts"],
];

/** Programs that know nothing of each other, whatever their floors. */
export const APART: readonly (readonly [string, string])[] = [
  ["server", "agent"],
];

/** Imports that stand against the floors; this list may only shrink. */
export const EXCEPTIONS: ReadonlySet<string> = new Set([]);
