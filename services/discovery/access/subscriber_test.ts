import { assertEquals, assertThrows } from "@std/assert";
import { Metadata } from "../../../proto/grpc/metadata.ts";
import { GrpcError, statusName } from "../../../proto/grpc/status.ts";
import type { DiscoveryNode } from "../../../proto/xds/discovery.ts";
import { certifiedCaller } from "../../../tests/support/memory/fake_caller.ts";
import {
  CONNECT_FIELD,
  MORE_CONNECT_FIELD,
  MORE_CONNECT_MAX,
  RELAY_FIELD,
} from "../../../proto/xds/relay_fields.ts";
import { discoveryNode } from "../../../tests/support/xds/discovery_node.ts";
import {
  type CallOrigin,
  NODE_ID_BYTES_MAX,
  subscriberOf,
} from "./subscriber.ts";

const NOBODY = {
  kind: "anonymous",
  commonName: "",
  fingerprint: "",
  names: [],
} as const;

const remoteAddress = "192.0.2.7:4000";

function certified(
  commonName: string,
  names: readonly string[] = [],
): CallOrigin {
  const { identity } = certifiedCaller(commonName, { names });
  return { remoteAddress, identity, needsNoProof: false };
}

const withToken: CallOrigin = {
  remoteAddress,
  identity: NOBODY,
  needsNoProof: false,
};
const onLoopback: CallOrigin = { ...withToken, needsNoProof: true };

const NONE = new Metadata();
const TOKEN = new Metadata({ authorization: "Bearer t" });
const RELAY = new Metadata({ [RELAY_FIELD]: "1" });
const TOKEN_AND_RELAY = new Metadata({
  authorization: "Bearer t",
  [RELAY_FIELD]: "1",
});

/** Node and name, or the status. */
function outcome(
  origin: CallOrigin,
  metadata: Metadata,
  xdsNode: DiscoveryNode | undefined,
): string {
  try {
    const { node, name } = subscriberOf(origin, metadata, xdsNode);
    return `${node ?? "-"}: ${name}`;
  } catch (error) {
    if (!(error instanceof GrpcError)) throw error;
    return statusName(error.code);
  }
}

Deno.test("a node speaks for itself and for nobody else", () => {
  const edge = certified("node:edge-1");
  // deno-fmt-ignore: the columns are the point.
  const cases: readonly (readonly [CallOrigin, Metadata, id: string, outcome: string])[] = [
    [edge,                                NONE,  "edge-1",        "edge-1: edge-1"],
    [edge,                                NONE,  "edge-1/envoy",  "edge-1: edge-1/envoy"],
    [edge,                                NONE,  "edge-1~a~b",    "edge-1: edge-1~a~b"],
    [edge,                                NONE,  "edge-2",        "PERMISSION_DENIED"],
    [edge,                                NONE,  "edge-10",       "PERMISSION_DENIED"],
    [edge,                                NONE,  "edge-1.b",      "PERMISSION_DENIED"],
    [edge,                                NONE,  "edge",          "PERMISSION_DENIED"],
    [edge,                                NONE,  "node:edge-1",   "PERMISSION_DENIED"],
    [edge,                                NONE,  "",              "INVALID_ARGUMENT"],
    [edge,                                RELAY, "edge-2",        "edge-1: edge-1~edge-2"],
    [edge,                                RELAY, "",              "INVALID_ARGUMENT"],
    [certified("system:node:n1"),         NONE,  "n1/x",          "n1: n1/x"],
    [certified("agents", ["DNS:n1"]),     NONE,  "n1",            "n1: n1"],
    [certified("agents", ["DNS:n1"]),     NONE,  "agents",        "agents: agents"],
    [certified("agents", ["URI:n1"]),     NONE,  "n1",            "PERMISSION_DENIED"],
    [certified("", ["DNS:n1"]),           NONE,  "n1",            "n1: n1"],
    [certified(""),                       NONE,  "/x",            "PERMISSION_DENIED"],
    [certified(""),                       RELAY, "x",             "PERMISSION_DENIED"],
    [withToken,                           TOKEN, "n1/x",          "n1: n1/x"],
    [withToken,                           TOKEN, "~x",            "PERMISSION_DENIED"],
    [withToken,                           TOKEN_AND_RELAY, "n1",  "PERMISSION_DENIED"],
    [withToken,                           NONE,  "n1/x",          "-: n1/x"],
    [onLoopback,                          NONE,  "any/thing",     "-: any/thing"],
    [onLoopback,                          RELAY, "any",           "-: any"],
    [onLoopback,                          NONE,  "",              "INVALID_ARGUMENT"],
  ];
  for (const [origin, metadata, id, expected] of cases) {
    const xdsNode = discoveryNode({ id });
    assertEquals(outcome(origin, metadata, xdsNode), expected, id);
  }
});

Deno.test("a first request without a node is refused, and a long id", () => {
  assertEquals(outcome(onLoopback, NONE, undefined), "INVALID_ARGUMENT");
  const longest = "x".repeat(NODE_ID_BYTES_MAX);
  const xdsNode = (id: string) => discoveryNode({ id });
  assertEquals(outcome(onLoopback, NONE, xdsNode(longest)), `-: ${longest}`);
  assertEquals(
    outcome(onLoopback, NONE, xdsNode(`${longest}x`)),
    "INVALID_ARGUMENT",
  );
});

Deno.test("only a relay has a CONNECT proxy", () => {
  const xdsNode = discoveryNode({ id: "edge-1" });
  const edge = certified("node:edge-1");
  const proxyOf = (origin: CallOrigin, fields: Record<string, string>) =>
    subscriberOf(origin, new Metadata(fields), xdsNode).connectProxy;
  const relay = { [RELAY_FIELD]: "1" };
  assertEquals(
    proxyOf(edge, { ...relay, [CONNECT_FIELD]: "127.0.0.1:3128" }),
    { host: "127.0.0.1", port: 3128 },
  );
  assertEquals(
    proxyOf(edge, { ...relay, [CONNECT_FIELD]: "[::1]:3128" }),
    { host: "::1", port: 3128 },
  );
  for (const [text, more] of [["3", 3], ["99", MORE_CONNECT_MAX]] as const) {
    const fields = { [CONNECT_FIELD]: "127.0.0.1:3128" };
    assertEquals(
      proxyOf(edge, { ...relay, ...fields, [MORE_CONNECT_FIELD]: text }),
      { host: "127.0.0.1", port: 3128, more },
    );
  }
  assertEquals(proxyOf(edge, relay), undefined);
  assertEquals(proxyOf(edge, { [CONNECT_FIELD]: "127.0.0.1:1" }), undefined);
  assertEquals(
    proxyOf(onLoopback, { ...relay, [CONNECT_FIELD]: "127.0.0.1:1" }),
    undefined,
  );
  for (const text of ["proxy:1", "127.0.0.1", "127.0.0.1:0", "[::1]:65536"]) {
    assertThrows(
      () => proxyOf(edge, { ...relay, [CONNECT_FIELD]: text }),
      GrpcError,
      "wanted IP:PORT",
    );
  }
});
