/**
 * The shapes of documents beside those with flags: the policy, services and
 * endpoints, kube-apiserver's egress selector, go-etcd's file. Words and limits
 * are those of the readers; a test holds both against each other.
 *
 * @module
 */

import { POLICY_FIELDS } from "../../services/catalog/sources/document/document_policy.ts";
import {
  AGENT_KEYS,
  BALANCES,
  ENDPOINT_ENDS,
  WEIGHT_MAX,
} from "../../services/catalog/model/model.ts";
import { ROUTE_WEIGHT_MAX } from "../../services/catalog/model/routes.ts";
import { NETWORK_CONTEXTS } from "../../client/egress_config.ts";
import type { MapShape, Shape } from "../../platform/documents/shape.ts";
import { parseRule, RuleError } from "../../policy/rule.ts";
import { UID_MAX } from "../../server/policy/admin_entry.ts";
import { ENTRIES_MAX } from "../../server/policy/policy.ts";

const TEXT: Shape = { kind: "text" };
const FLAG: Shape = { kind: "boolean" };
const PORT: Shape = { kind: "number", least: 1, most: 65_535 };
const TIME: Shape = { kind: "duration", leastMs: 1 };
/** Or not at all. */
const TIME_OR_NONE: Shape = { kind: "duration", leastMs: 0 };
const TEXTS: Shape = { kind: "list", of: TEXT };

function word(words: readonly string[]): Shape {
  return { kind: "word", words };
}

function number(least: number, most: number): Shape {
  return { kind: "number", least, most };
}

function map(
  fields: Readonly<Record<string, Shape>>,
  rest: Omit<MapShape, "kind" | "fields"> = {},
): MapShape {
  return { kind: "map", fields, ...rest };
}

function list(of: Shape, least?: number, most?: number): Shape {
  return {
    kind: "list",
    of,
    ...(least === undefined ? {} : { least }),
    ...(most === undefined ? {} : { most }),
  };
}

const RULES: Shape = list({
  kind: "text",
  pattern: /:/,
  wanted: "PROTO:HOST:PORTS, such as tcp:10.0.0.0/8:443, or unix:PATH",
  check(text) {
    try {
      parseRule(text);
      return undefined;
    } catch (error) {
      if (!(error instanceof RuleError)) throw error;
      return error.message;
    }
  },
});

const SERVICE_PATTERNS: Shape = list({
  kind: "text",
  pattern: /^\*$|\//,
  wanted: 'NAMESPACE/NAME, or "*" for every service',
});

const SAYS_SOMETHING = {
  someOf: [["allow", "deny"]],
  isStrict: true,
} as const;

const ADMIN_ROLE: Shape = word(["view", "operate"]);

function entries(of: Shape): Shape {
  return list(of, undefined, ENTRIES_MAX);
}

/** `--policy-file`. */
export const POLICY_SHAPE: MapShape = map({
  frontends: entries({
    kind: "either",
    of: [
      map({
        commonName: TEXT,
        organization: TEXT,
        subjectAltName: TEXT,
        nodes: TEXTS,
        allow: RULES,
        deny: RULES,
      }, {
        isStrict: true,
        someOf: [
          ["commonName", "organization", "subjectAltName"],
          ["allow", "deny"],
        ],
      }),
      map({ socket: TEXT, nodes: TEXTS, allow: RULES, deny: RULES }, {
        ...SAYS_SOMETHING,
        required: ["socket"],
      }),
    ],
  }),
  nodes: entries(map({
    name: TEXT,
    identifiers: TEXTS,
    services: SERVICE_PATTERNS,
  }, {
    required: ["name"],
    someOf: [["identifiers", "services"]],
    isStrict: true,
  })),
  discovery: entries(map({
    node: TEXT,
    allow: SERVICE_PATTERNS,
    deny: SERVICE_PATTERNS,
  }, { ...SAYS_SOMETHING, required: ["node"] })),
  dials: entries(map({
    node: TEXT,
    nodes: TEXTS,
    allow: RULES,
    deny: RULES,
  }, { ...SAYS_SOMETHING, required: ["node"] })),
  admins: entries({
    kind: "either",
    of: [
      map({
        commonName: TEXT,
        organization: TEXT,
        subjectAltName: TEXT,
        role: ADMIN_ROLE,
      }, {
        isStrict: true,
        required: ["role"],
        someOf: [["commonName", "organization", "subjectAltName"]],
      }),
      map({ uid: number(0, UID_MAX), role: ADMIN_ROLE }, {
        isStrict: true,
        required: ["uid", "role"],
      }),
    ],
  }),
}, { isStrict: true });

const HEALTH_TLS = map({ verify: FLAG, serverName: TEXT });

const HEALTH = map({
  tcp: map({ port: PORT }),
  http: map({
    path: TEXT,
    port: PORT,
    host: TEXT,
    status: list({
      kind: "either",
      of: [{
        kind: "text",
        pattern: /^[1-5]\d\d(?:-[1-5]\d\d)?$/,
        wanted: "a status such as 200, or a range such as 200-299",
      }, number(100, 599)],
    }, 1),
    tls: HEALTH_TLS,
  }),
  grpc: map({ service: TEXT, port: PORT, host: TEXT, tls: HEALTH_TLS }),
  interval: TIME,
  timeout: TIME,
  rise: number(1, 100),
  fall: number(1, 100),
}, { oneOf: ["tcp", "http", "grpc"] });

const SERVICE_POLICY: Readonly<Record<typeof POLICY_FIELDS[number], Shape>> = {
  balance: word(BALANCES),
  zoneAware: FLAG,
  nodeAware: FLAG,
  dialTimeout: TIME,
  udpIdle: TIME,
  drain: TIME_OR_NONE,
  onEndpointRemoved: word(ENDPOINT_ENDS),
  onEndpointDown: word(ENDPOINT_ENDS),
  endpointDrain: TIME,
  idleTimeout: TIME_OR_NONE,
  halfClosedTimeout: TIME_OR_NONE,
  userTimeout: TIME_OR_NONE,
  agentOnFailure: FLAG,
  health: HEALTH,
  ejection: map({ failures: number(0, 1_000), time: TIME }),
};

const ROUTE = map({
  host: TEXT,
  prefix: TEXT,
  headers: { kind: "names", of: TEXT },
  to: list(map({
    service: TEXT,
    port: PORT,
    weight: number(1, ROUTE_WEIGHT_MAX),
  }, { required: ["service", "port"] })),
}, { required: ["to"] });

const SERVICE = map({
  name: TEXT,
  namespace: TEXT,
  ports: list(
    map({
      name: TEXT,
      port: PORT,
      protocol: word(["tcp", "udp"]),
      appProtocol: TEXT,
      routes: list(ROUTE),
      listen: {
        kind: "either",
        of: [{
          kind: "text",
          pattern: /^(?:\[[^\]]+\]:|[^:]+:)?\d{1,5}$/,
          wanted: "a port, or ADDRESS:PORT with an IP address",
        }, PORT],
      },
    }, { required: ["port"] }),
    1,
  ),
  affinity: map({ clientIP: map({ ttl: TIME }) }),
  policy: map(SERVICE_POLICY),
  endpoints: list(map({
    address: TEXT,
    port: PORT,
    ports: { kind: "names", of: PORT },
    state: word(["ready", "serving", "terminating", "unready"]),
    node: TEXT,
    zone: TEXT,
    weight: number(1, WEIGHT_MAX),
    via: {
      kind: "either",
      of: [
        word(["direct", "agent"]),
        map(Object.fromEntries(AGENT_KEYS.map((key) => [key, TEXT])), {
          oneOf: AGENT_KEYS,
        }),
      ],
    },
  }, { required: ["address"] })),
}, { required: ["name", "ports"] });

/** `proxy --config`, `server --discovery-config`, and what `--services-url` fetches. */
export const SERVICES_SHAPE: MapShape = map({ services: list(SERVICE) }, {
  required: ["services"],
});

/** kube-apiserver's `--egress-selector-config-file`, and our `--egress-config`. */
export const EGRESS_SHAPE: MapShape = map({
  apiVersion: word([
    "apiserver.k8s.io/v1alpha1",
    "apiserver.k8s.io/v1beta1",
    "apiserver.config.k8s.io/v1alpha1",
    "apiserver.config.k8s.io/v1beta1",
  ]),
  kind: word(["EgressSelectorConfiguration"]),
  egressSelections: list(map({
    name: word(NETWORK_CONTEXTS),
    connection: map({
      proxyProtocol: word(["GRPC", "HTTPConnect", "Direct"]),
      transport: map({
        tcp: map({
          url: { kind: "text", pattern: /^https:\/\//, wanted: "https://…" },
          tlsConfig: map({
            caBundle: TEXT,
            clientKey: TEXT,
            clientCert: TEXT,
            tlsServerName: TEXT,
          }, { required: ["caBundle", "clientKey", "clientCert"] }),
        }, { required: ["url", "tlsConfig"] }),
        uds: map({ udsName: TEXT }, { required: ["udsName"] }),
      }, { oneOf: ["tcp", "uds"] }),
    }, { required: ["proxyProtocol"] }),
  }, { required: ["name", "connection"] })),
}, { required: ["apiVersion", "kind", "egressSelections"] });

const TEXT_OR_TEXTS: Shape = { kind: "either", of: [TEXT, TEXTS] };
const OF_OTHERS = { isOpen: true } as const;

/** go-etcd's, by `--etcd-config`. */
export const ETCD_SHAPE: MapShape = map({
  cluster: map({ machines: TEXT_OR_TEXTS }, {
    ...OF_OTHERS,
    required: ["machines"],
  }),
  config: map({
    certFile: TEXT_OR_TEXTS,
    keyFile: TEXT_OR_TEXTS,
    caCertFile: TEXT_OR_TEXTS,
  }, OF_OTHERS),
}, { ...OF_OTHERS, required: ["cluster"] });
