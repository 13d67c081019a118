/**
 * What readers refuse the schemas refuse, and what stands in docs/ both take.
 *
 * @module
 */

import { assert, assertEquals } from "@std/assert";
import { parse } from "../../platform/documents/yaml.ts";
import { readCatalogDocument } from "../../services/catalog/sources/document/catalog_document.ts";
import { parseEgressConfig } from "../../client/egress_config.ts";
import { readShape } from "../../platform/documents/shape.ts";
import type { JsonSchema } from "../../platform/documents/json_schema.ts";
import { Policy } from "../../server/policy/policy.ts";
import { AGENT_FLAGS } from "../agent/flags.ts";
import { SERVER_FLAGS } from "../server/flags.ts";
import type { FlagTable } from "../flags/flag.ts";
import { ETCD_CONFIG } from "../flags/etcd_flags.ts";
import { readFlags } from "../flags/read_flags.ts";
import { configKinds, documentKindOf, kindNamed } from "./kinds.ts";

const TABLES: ReadonlyMap<string, FlagTable> = new Map<string, FlagTable>([
  ["server", SERVER_FLAGS],
  ["agent", AGENT_FLAGS],
]);
// What flags demand of each other no schema says.
const flagProblems = () => [];
const KINDS = configKinds(
  [...TABLES].map(([name, flags]) => ({ name, flags, flagProblems })),
);

/** As much of draft 2020-12 as the schemas use; anything else is a mistake. */
function fits(schema: JsonSchema, value: unknown): boolean {
  const list = (name: string) => (schema[name] ?? []) as JsonSchema[];
  return Object.entries(schema).every(([keyword, wanted]) => {
    switch (keyword) {
      case "$schema":
      case "title":
      case "description":
      case "deprecated":
        return true;
      case "type":
        return [wanted].flat().some((type) => isOfType(type as string, value));
      case "enum":
        return (wanted as unknown[]).includes(value);
      case "const":
        return value === wanted;
      case "minimum":
        return typeof value !== "number" || value >= Number(wanted);
      case "maximum":
        return typeof value !== "number" || value <= Number(wanted);
      case "minLength":
        return typeof value !== "string" || value.length >= Number(wanted);
      case "pattern":
        return typeof value !== "string" ||
          new RegExp(String(wanted), "u").test(value);
      case "minItems":
        return !Array.isArray(value) || value.length >= Number(wanted);
      case "maxItems":
        return !Array.isArray(value) || value.length <= Number(wanted);
      case "items":
        return !Array.isArray(value) ||
          value.every((item) => fits(wanted as JsonSchema, item));
      case "anyOf":
        return list("anyOf").some((one) => fits(one, value));
      case "oneOf":
        return list("oneOf").filter((one) => fits(one, value)).length === 1;
      case "not":
        return !fits(wanted as JsonSchema, value);
      case "allOf":
        return list("allOf").every((one) => fits(one, value));
      case "required":
        return !isMap(value) ||
          (wanted as string[]).every((name) => Object.hasOwn(value, name));
      case "properties":
        return !isMap(value) ||
          Object.entries(wanted as Record<string, JsonSchema>).every((
            [name, one],
          ) => !Object.hasOwn(value, name) || fits(one, value[name]));
      case "additionalProperties":
        return !isMap(value) ||
          Object.entries(value).every(([name, item]) =>
            Object.hasOwn(schema["properties"] ?? {}, name) ||
            (wanted !== false && fits(wanted as JsonSchema, item))
          );
      default:
        throw new TypeError(`What is ${keyword}?`);
    }
  });
}

function isMap(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isOfType(type: string, value: unknown): boolean {
  switch (type) {
    case "object":
      return isMap(value);
    case "array":
      return Array.isArray(value);
    case "integer":
      return Number.isInteger(value);
    case "null":
      return value === null;
    case "string":
      return typeof value === "string";
    case "number":
      return typeof value === "number";
    case "boolean":
      return typeof value === "boolean";
    default:
      throw new TypeError(`What is ${type}?`);
  }
}

const READERS: Readonly<Record<string, (text: string) => void>> = {
  policy: (text) => void new Policy(parse(text)),
  services: (text) => void readCatalogDocument(text),
  "egress-selector": (text) => void parseEgressConfig(text, "x"),
  "etcd-config": (text) => void readShape(ETCD_CONFIG, parse(text)),
  server: (text) => readAsFlags("server", text),
  agent: (text) => readAsFlags("agent", text),
};

function readAsFlags(name: string, text: string): void {
  readFlags(name, TABLES.get(name)!, {
    argv: ["--config=x.yaml"],
    environment: () => undefined,
    readFile: () => text,
  });
}

function isRead(kind: string, text: string): boolean {
  try {
    READERS[kind]!(text);
    return true;
  } catch (error) {
    assert(error instanceof Error && error.name !== "TypeError", `${error}`);
    return false;
  }
}

function egress(selections: string): string {
  return "{apiVersion: apiserver.k8s.io/v1beta1, kind: " +
    `EgressSelectorConfiguration, egressSelections: [${selections}]}`;
}

const ENTRY = "frontends: [{commonName: a, allow: ['*:*:*']}]";
const SERVICE = "services: [{name: a, ports: [{port: 80}]}]";

const REFUSED: Readonly<Record<string, readonly string[]>> = {
  policy: [
    "[]",
    "frontend: []",
    "frontends: {}",
    "frontends: [{commonName: a}]",
    "frontends: [{allow: ['*:*:*']}]",
    "frontends: [{commonName: 5, allow: ['*:*:*']}]",
    "frontends: [{commonName: a, socket: /x, allow: ['*:*:*']}]",
    "frontends: [{commonName: a, allow: [nocolon]}]",
    "frontends: [{commonName: a, allow: ['']}]",
    "frontends: [{commonName: '', allow: ['*:*:*']}]",
    "frontends: [{commonName: a, allow: 5}]",
    "frontends: [{commonName: a, allow: ['*:*:*'], node: b}]",
    "nodes: [{name: a}]",
    "nodes: [{identifiers: [ipv4=1.1.1.1]}]",
    "nodes: [{name: a, services: [web]}]",
    "discovery: [{node: a}]",
    "discovery: [{allow: ['*']}]",
    "discovery: [{node: a, allow: [web]}]",
    "dials: [{allow: ['*:*:*']}]",
    "dials: [{node: a}]",
  ],
  services: [
    "services: {}",
    "{}",
    "services: [{ports: [{port: 80}]}]",
    "services: [{name: a}]",
    "services: [{name: a, ports: []}]",
    "services: [{name: a, ports: [{}]}]",
    "services: [{name: a, ports: [{port: 0}]}]",
    "services: [{name: a, ports: [{port: 65536}]}]",
    "services: [{name: a, ports: [{port: 80, protocol: sctp}]}]",
    "services: [{name: a, ports: [{port: 80, colour: red}]}]",
    "services: [{name: a, ports: [{port: 80, listen: x}]}]",
    "services: [{name: a, ports: [{port: 80}], policy: {balance: best}}]",
    "services: [{name: a, ports: [{port: 80}], policy: {dialTimeout: 5}}]",
    "services: [{name: a, ports: [{port: 80}], policy: {zoneAware: 1}}]",
    "services: [{name: a, ports: [{port: 80}], policy: {health: {}}}]",
    "services: [{name: a, ports: [{port: 80}], policy: {health: {tcp: {}, grpc: {}}}}]",
    "services: [{name: a, ports: [{port: 80}], policy: {health: {http: {status: []}}}}]",
    "services: [{name: a, ports: [{port: 80}], policy: {health: {http: {status: [99]}}}}]",
    "services: [{name: a, ports: [{port: 80}], endpoints: [{}]}]",
    "services: [{name: a, ports: [{port: 80}], endpoints: [{address: a, weight: 0}]}]",
    "services: [{name: a, ports: [{port: 80}], endpoints: [{address: a, state: up}]}]",
    "services: [{name: a, ports: [{port: 80}], endpoints: [{address: a, via: x}]}]",
    "services: [{name: a, ports: [{port: 80}], endpoints: [{address: a, via: {host: a, uid: b}}]}]",
    "services: [{name: a, ports: [{port: 80, appProtocol: http, routes: [{}]}]}]",
    "services: [{name: a, ports: [{port: 80, appProtocol: http, routes: [{to: [{service: b}]}]}]}]",
    "services: [{name: a, ports: [{port: 80}], affinity: {clientIP: {ttl: x}}}]",
  ],
  "egress-selector": [
    "{}",
    "{apiVersion: v1, kind: EgressSelectorConfiguration, egressSelections: []}",
    "{apiVersion: apiserver.k8s.io/v1beta1, kind: X, egressSelections: []}",
    egress("{name: cluster}"),
    egress("{name: x, connection: {proxyProtocol: Direct}}"),
    egress("{name: cluster, connection: {proxyProtocol: GRPC, transport: {}}}"),
  ],
  "etcd-config": [
    "[]",
    "{}",
    '{"cluster": []}',
    '{"cluster": {}}',
    '{"cluster": {"machines": 4001}}',
    '{"cluster": {"machines": [4001]}}',
    '{"cluster": {"machines": ["http://a:1"]}, "config": {"keyFile": 5}}',
  ],
  server: [
    "[]",
    "server-prt: 1",
    "config: x.yaml",
    "health-port: 65536",
    "health-port: many",
    "mode: grpcc",
    "mode: {a: b}",
    "enable-profiling: maybe",
    "proxy-strategies: [nonsense, {}]",
  ],
  agent: ["agent-prt: 1", "v: 11", "warn-on-channel-limit: 5x"],
};

const TAKEN: Readonly<Record<string, readonly string[]>> = {
  policy: [
    ENTRY,
    "frontends: [{socket: /run/a.sock, deny: ['tcp:*:25']}]",
    "dials: [{node: '*', nodes: ['edge-*'], allow: ['unix:/run/*']}]",
    "nodes: [{name: a, services: ['default/*']}]",
    "discovery: [{node: '*', allow: ['*']}]",
  ],
  services: [
    "services: []",
    SERVICE,
    "services: [{name: a, namespace: , ports: [{port: 80, listen: '127.0.0.1:8080'}]}]",
    "services: [{name: a, ports: [{port: 80, listen: 8080}], policy: {drain: 0s}}]",
    "services: [{name: a, ports: [{port: 80}], policy: {dialTimeout: " +
    "1m30s, health: {http: {status: [200, '300-399']}}}}]",
  ],
  "egress-selector": [
    egress(
      "{name: cluster, connection: {proxyProtocol: GRPC, transport: " +
        "{uds: {udsName: /run/x}}}}, " +
        "{name: etcd, connection: {proxyProtocol: Direct}}",
    ),
  ],
  "etcd-config": [
    '{"cluster": {"machines": ["http://a:4001"]}}',
    '{"cluster": {"leader": "http://a:4001", "machines": ["http://a:4001"]}, ' +
    '"config": {"certFile": "", "keyFile": "", "caCertFile": [], ' +
    '"timeout": 1000000000, "consistency": "STRONG"}}',
  ],
  server: [
    "",
    "health-port: 8092",
    "health-port: '8092'",
    "mode: grpc",
    "mode:",
    "proxy-strategies: [default, destHost]",
    "proxy-strategies: default,destHost",
    "v: 4",
  ],
  agent: ["v: 0", "log-format: json"],
};

for (const [kind, texts] of Object.entries(REFUSED)) {
  Deno.test(`what the reader of ${kind} refuses, schema and check refuse`, () => {
    const { schema, problems } = kindNamed(KINDS, kind);
    for (const text of texts) {
      const value = parse(text);
      assertEquals(isRead(kind, text), false, `the reader takes ${text}`);
      assertEquals(fits(schema(), value), false, `the schema takes ${text}`);
      assert(problems(value, text).length > 0, `check takes ${text}`);
    }
  });
}

for (const [kind, texts] of Object.entries(TAKEN)) {
  Deno.test(`what the reader of ${kind} takes, schema and check take`, () => {
    const { schema, problems } = kindNamed(KINDS, kind);
    for (const text of texts) {
      const value = parse(text);
      assert(isRead(kind, text), `the reader refuses ${text}`);
      assert(fits(schema(), value), `the schema refuses ${text}`);
      assertEquals(
        problems(value, text).map(({ message }) => message),
        [],
        text,
      );
    }
  });
}

Deno.test("the examples of docs/ are what their schemas want", async () => {
  let found = 0;
  for await (const { name } of Deno.readDir("docs")) {
    if (!name.endsWith(".md")) continue;
    const text = await Deno.readTextFile(`docs/${name}`);
    for (const [, block = ""] of text.matchAll(/^```ya?ml\n(.*?)^```/gms)) {
      let value: unknown;
      try {
        value = parse(block);
      } catch {
        continue;
      }
      const kind = documentKindOf(KINDS, value, "");
      // Of others' programs, or a part of a file.
      if (kind === undefined || !READERS[kind.name]) continue;
      if (!isRead(kind.name, block)) continue;
      found++;
      assert(fits(kind.schema(), value), `${name}:\n${block}`);
      assertEquals(
        kind.problems(value, block).map(({ message }) => message),
        [],
        `${name}:\n${block}`,
      );
    }
  }
  assert(found >= 2, `${found} examples`);
});
