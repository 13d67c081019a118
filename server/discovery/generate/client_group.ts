/**
 * To whom services are told, as far as that makes a difference to what is told:
 * clients of one group are told the same, and share one view.
 *
 * Who a client is, and what it may see, is decided elsewhere (`access/`).
 *
 * @module
 */

import type { Visibility } from "../../policy/visibility.ts";
import type { Endpoint, Service } from "../../../catalog/model/model.ts";
import type { DiscoveryNode } from "../../../proto/xds/discovery.ts";

/** What kind of program asks; each has resources that only it understands. */
export type Form = typeof FORMS[number];

export const FORMS = ["proxy", "grpc", "envoy"] as const;

/** An HTTP CONNECT proxy on the client's own machine: an IP address, a port. */
export interface ConnectProxy {
  readonly host: string;
  readonly port: number;
  /** At how many of `connectHost` it is, too, at the same port. */
  readonly more?: number;
}

/** See the module description. */
export interface ClientGroup {
  /** The same text for all of one group. */
  readonly key: string;
  readonly form: Form;
  readonly visible: Visibility;
  /** Absent: endpoints behind agents are out of its reach. */
  readonly connectProxy?: ConnectProxy;
  /** Where it is; absent: nobody knows. */
  readonly zone?: string;
}

/** An group, less what makes no difference to the service in hand. */
export type Variant = Omit<ClientGroup, "key" | "visible">;

/** What the server knows of a client besides what the client says. */
export interface ClientFacts {
  readonly visible: Visibility;
  /**
   * What the relay on its node offers (metadata `tunnel-connect`); counts only
   * for clients that ask for it, since others would refuse their clusters.
   */
  readonly connectProxy?: ConnectProxy;
}

/**
 * A client's group. Its node's metadata decides: in a map `tunnel`, or with
 * names such as `tunnel.kind`,
 *
 * - `kind`: `proxy`, `grpc` or `envoy`; without it the user agent says it, and
 *   who has none that is known is told what Envoy is told.
 * - `http_11_proxy`: true for those that know `Http11ProxyUpstreamTransport`
 *   (gRFC A86).
 */
export function clientGroupOf(
  node: DiscoveryNode,
  { visible, connectProxy }: ClientFacts,
): ClientGroup {
  const form = formOf(node);
  const { zone } = node.locality;
  const asksForProxy = form !== "proxy" &&
    tunnelMetadata(node, "http_11_proxy") === true;
  return clientGroup(form, visible, {
    ...zone === "" ? {} : { zone },
    ...asksForProxy && connectProxy !== undefined ? { connectProxy } : {},
  });
}

/** An group with its key. */
export function clientGroup(
  form: Form,
  visible: Visibility,
  rest: Pick<ClientGroup, "connectProxy" | "zone"> = {},
): ClientGroup {
  const { connectProxy, zone } = rest;
  const key = JSON.stringify([
    form,
    visible.id,
    connectProxy === undefined ? "" : connectText(connectProxy),
    zone ?? "",
  ]);
  return Object.freeze({ key, form, visible, ...rest });
}

/** Stands for every proxy where only that there is one makes a difference. */
const SOME_PROXY: ConnectProxy = Object.freeze({ host: "::", port: 1 });

/** What of an group makes a difference to what it is told of a service. */
export function variantFor(
  { policy }: Service,
  endpoints: readonly Endpoint[],
  { form, connectProxy, zone }: ClientGroup,
): Variant {
  // A proxy is told everything, and finds its own zone and its own road.
  if (form === "proxy") return { form };
  const isProxyNamed = endpoints.some(({ via }) => via.kind === "agent");
  return {
    form,
    ...connectProxy === undefined
      ? {}
      : { connectProxy: isProxyNamed ? connectProxy : SOME_PROXY },
    ...zone !== undefined && policy.zoneAware === true ? { zone } : {},
  };
}

/** All that {@linkcode variantFor} may answer for an group. */
export function variantsOf(
  { form, connectProxy, zone }: ClientGroup,
): readonly Variant[] {
  if (form === "proxy") return [{ form }];
  const proxies = connectProxy === undefined
    ? [{}]
    : [{ connectProxy }, { connectProxy: SOME_PROXY }];
  const zones = zone === undefined ? [{}] : [{}, { zone }];
  return proxies.flatMap((proxy) =>
    zones.map((zone) => ({ form, ...proxy, ...zone }))
  );
}

/** `127.0.0.1:3128+16`: the same for the same proxies. */
export function connectText({ host, port, more = 0 }: ConnectProxy): string {
  const at = host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`;
  return more === 0 ? at : `${at}+${more}`;
}

function formOf(node: DiscoveryNode): Form {
  const kind = FORMS.find((form) => form === tunnelMetadata(node, "kind"));
  if (kind !== undefined) return kind;
  // grpc-go: "gRPC Go", C-core: "gRPC C-core linux Python", grpc-js: "gRPC Node
  // Pure JS".
  if (node.userAgentName.startsWith("gRPC")) return "grpc";
  return node.userAgentName === "tunnel" ? "proxy" : "envoy";
}

function tunnelMetadata({ metadata }: DiscoveryNode, name: string): unknown {
  const map = metadata["tunnel"];
  if (typeof map === "object" && map !== null && Object.hasOwn(map, name)) {
    return (map as Readonly<Record<string, unknown>>)[name];
  }
  return metadata[`tunnel.${name}`];
}
