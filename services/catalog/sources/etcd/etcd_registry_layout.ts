/**
 * The keys that kube-proxy 0.4 read, with the objects of Kubernetes' API
 * v1beta1 in JSON:
 *
 * ```
 * /registry/services/specs/ID        {"id", "port", "protocol"}
 * /registry/services/endpoints/ID    {"id", "endpoints": ["10.0.0.1:80", …]}
 * ```
 *
 * Later clusters write other objects below the same prefix, in other versions
 * and in protobuf. Those are refused by name: their API server is the place to
 * ask.
 *
 * @module
 */

import {
  DEFAULT_NAMESPACE,
  DEFAULT_WEIGHT,
  DIRECT,
  type Endpoint,
  NO_AFFINITY,
  NO_POLICY,
  type Service,
} from "../../model/model.ts";
import {
  canonicalAddress,
  checkService,
  isPort,
} from "../../model/validate.ts";
import {
  type EtcdLayout,
  LayoutError,
  type ParsedKey,
  parseObject,
} from "./etcd_entries.ts";

export const REGISTRY_PREFIX = "/registry/services/";

/** Both have the same fields; 0.1 wrote none. */
const VERSIONS: readonly unknown[] = [undefined, "", "v1beta1", "v1beta2"];

export const REGISTRY_LAYOUT: EtcdLayout = {
  sourceName: "etcd-registry",
  prefix: REGISTRY_PREFIX,
  placeOf,
  readService: readSpec,
  readEndpoints: readAddresses,
};

function placeOf(key: string): ParsedKey {
  const [kind, id, ...rest] = key.slice(REGISTRY_PREFIX.length).split("/");
  if (rest.length > 0) {
    throw new LayoutError(
      "it has a namespace, as in clusters after 0.4; take services from their " +
        "API server",
    );
  }
  if (!id || (kind !== "specs" && kind !== "endpoints")) {
    throw new LayoutError(
      `wanted ${REGISTRY_PREFIX}specs/ID or ${REGISTRY_PREFIX}endpoints/ID`,
    );
  }
  return {
    kind: kind === "specs" ? "service" : "endpoints",
    // Ids were unique, whatever namespace the object says.
    service: `${DEFAULT_NAMESPACE}/${id}`,
  };
}

function readSpec(key: string, _place: ParsedKey, text: string): Service {
  const id = idOf(key);
  const { port, protocol } = readObject(text, "Service", id);
  if (typeof port !== "number" || !isPort(port)) {
    throw new LayoutError(
      `its port is ${JSON.stringify(port)}, wanted 1 to 65535`,
    );
  }
  const service: Service = {
    namespace: DEFAULT_NAMESPACE,
    name: id,
    // The port is the one of the proxy's machine, too.
    ports: [{
      name: "",
      port,
      protocol: protocolOf(protocol),
      listen: { port },
    }],
    affinity: NO_AFFINITY,
    policy: NO_POLICY,
  };
  const problem = checkService(service);
  if (problem !== undefined) throw new LayoutError(problem);
  return service;
}

/** In upper or lower case, as upstream's `ToUpper` allows; absent: TCP. */
function protocolOf(value: unknown): "tcp" | "udp" {
  const word = String(value || "tcp").toLowerCase();
  if (word === "tcp" || word === "udp") return word;
  throw new LayoutError(
    `its protocol is ${JSON.stringify(value)}, wanted TCP or UDP`,
  );
}

function readAddresses(
  key: string,
  text: string,
  _of: Service | undefined,
  refuse: (problem: string) => void,
): readonly Endpoint[] {
  const { endpoints } = readObject(text, "Endpoints", idOf(key));
  if (endpoints === undefined || endpoints === null) return [];
  if (!Array.isArray(endpoints)) {
    throw new LayoutError('its endpoints are no list, wanted ["HOST:PORT", …]');
  }
  return endpoints.flatMap((item: unknown) => {
    const match = /^\[?([^\]]+?)\]?:(\d{1,5})$/.exec(String(item));
    const address = canonicalAddress(match?.[1] ?? "");
    const port = Number(match?.[2]);
    if (address === undefined || !isPort(port)) {
      refuse(`${JSON.stringify(item)} is left out; wanted HOST:PORT`);
      return [];
    }
    return [{
      address,
      ports: [{ name: "", port }],
      state: "ready",
      weight: DEFAULT_WEIGHT,
      via: DIRECT,
    }];
  });
}

function readObject(
  text: string,
  wanted: "Service" | "Endpoints",
  id: string,
): Readonly<Record<string, unknown>> {
  const value = parseObject(text);
  if (!VERSIONS.includes(value["apiVersion"])) {
    throw new LayoutError(
      `its apiVersion is ${JSON.stringify(value["apiVersion"])}, wanted ` +
        "v1beta1; take services from the API server",
    );
  }
  const { kind = wanted, id: named = id } = value;
  if (kind !== wanted) {
    throw new LayoutError(`its kind is ${JSON.stringify(kind)}, not ${wanted}`);
  }
  if (named !== id) {
    throw new LayoutError(
      `its id is ${JSON.stringify(named)}, its key says "${id}"`,
    );
  }
  return value;
}

function idOf(key: string): string {
  return key.slice(key.lastIndexOf("/") + 1);
}
