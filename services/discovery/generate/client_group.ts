/**
 * A group of clients: all that makes a difference to the resources that a
 * client receives. Clients of one group receive the same, and share one view
 * (go-control-plane's node group).
 *
 * The identity and the rights of a client are decided elsewhere (`access/`).
 *
 * @module
 */

import { hostPort } from "../../../proto/peer/host_port.ts";
import type {
  Endpoint,
  Service,
  Visibility,
} from "../../catalog/model/model.ts";
import type { DiscoveryNode } from "../../../proto/xds/discovery.ts";

/** The kind of program; each has resources that only it understands. */
export type Form = typeof FORMS[number];

export const FORMS = ["service", "grpc", "envoy"] as const;

/** An HTTP CONNECT proxy on the client's own machine: an IP address, a port. */
export interface ConnectProxy {
  readonly host: string;
  readonly port: number;
  /** The number of `connectHost` addresses where it listens too, at that port. */
  readonly more?: number;
}

/** See the module description. */
export interface ClientGroup {
  /** Equal for all clients of one group. */
  readonly key: string;
  readonly form: Form;
  readonly visible: Visibility;
  /** Absent: it cannot reach endpoints behind agents. */
  readonly connectProxy?: ConnectProxy;
  /** Where it is; absent: unknown. */
  readonly zone?: string;
}

/** The parts of a group that make a difference to one service. */
export type Variant = Omit<ClientGroup, "key" | "visible">;

/** What the server knows of a client besides the node that it sends. */
export interface ClientFacts {
  readonly visible: Visibility;
  /**
   * What the relay on its node offers (metadata `tunnel-connect`); counts only
   * for clients that ask for it, since others would refuse their clusters.
   */
  readonly connectProxy?: ConnectProxy | undefined;
}

/**
 * A client's group. Its node's metadata decides: in a map `tunnel`, or with
 * names such as `tunnel.kind`,
 *
 * - `kind`: `service`, `grpc` or `envoy`; without it the user agent decides, and an
 *   unknown user agent receives what Envoy receives.
 * - `http_11_proxy`: true for clients that know `Http11ProxyUpstreamTransport`
 *   (gRFC A86).
 */
export function clientGroupOf(
  node: DiscoveryNode,
  { visible, connectProxy }: ClientFacts,
): ClientGroup {
  const form = formOf(node);
  const { zone } = node.locality;
  const asksForProxy = form !== "service" &&
    tunnelMetadata(node, "http_11_proxy") === true;
  return clientGroup(form, visible, {
    ...zone === "" ? {} : { zone },
    ...asksForProxy && connectProxy !== undefined ? { connectProxy } : {},
  });
}

/** A group with its key. */
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

/** Stands for every proxy where its address makes no difference. */
const SOME_PROXY: ConnectProxy = Object.freeze({ host: "::", port: 1 });

/** The parts of a group that make a difference to a service. */
export function variantFor(
  { policy }: Service,
  endpoints: readonly Endpoint[],
  { form, connectProxy, zone }: ClientGroup,
): Variant {
  // It receives everything, and finds its zone and its route itself.
  if (form === "service") return { form };
  const isProxyNamed = endpoints.some(({ via }) => via.kind === "agent");
  return {
    form,
    ...connectProxy === undefined
      ? {}
      : { connectProxy: isProxyNamed ? connectProxy : SOME_PROXY },
    ...zone !== undefined && policy.zoneAware === true ? { zone } : {},
  };
}

/** All variants that {@linkcode variantFor} may return for a group. */
export function variantsOf(
  { form, connectProxy, zone }: ClientGroup,
): readonly Variant[] {
  if (form === "service") return [{ form }];
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
  const at = hostPort(host, port);
  return more === 0 ? at : `${at}+${more}`;
}

function formOf(node: DiscoveryNode): Form {
  const kind = FORMS.find((form) => form === tunnelMetadata(node, "kind"));
  if (kind !== undefined) return kind;
  // grpc-go: "gRPC Go", C-core: "gRPC C-core linux Python", grpc-js: "gRPC Node
  // Pure JS".
  return node.userAgentName.startsWith("gRPC") ? "grpc" : "envoy";
}

function tunnelMetadata({ metadata }: DiscoveryNode, name: string): unknown {
  const map = metadata["tunnel"];
  if (typeof map === "object" && map !== null && Object.hasOwn(map, name)) {
    return (map as Readonly<Record<string, unknown>>)[name];
  }
  return metadata[`tunnel.${name}`];
}
