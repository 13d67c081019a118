/**
 * What a discovery server tells node proxies of services, made by the server's
 * own generator.
 *
 * @module
 */

import {
  keyOf,
  type Service,
  type ServiceEndpoints,
} from "../../../services/catalog/model/model.ts";
import type { Resource, ResourceKind } from "../../../proto/xds/resource.ts";
import { generateService } from "../../../services/discovery/generate/generate_service.ts";

/** See the module description. */
export function proxyResources(
  services: readonly Service[],
  endpoints: readonly ServiceEndpoints[],
): Readonly<Record<ResourceKind, readonly Resource[]>> {
  const all = services.flatMap((service) => {
    const behind = endpoints.find((each) => each.service === keyOf(service));
    const input = { service, endpoints: behind?.endpoints ?? [] };
    return generateService(input, { form: "proxy" }).claims
      .map(({ resource }) => resource);
  });
  const of = (kind: ResourceKind) => all.filter((each) => each.kind === kind);
  return {
    cluster: of("cluster"),
    endpoints: of("endpoints"),
    listener: of("listener"),
    route: of("route"),
  };
}
