/**
 * Names of `Object.prototype` in every text that somebody else may choose: they
 * are names like any others. Nothing ends, nothing is unforeseen, and rules are
 * asked as for any other text.
 *
 * @module
 */

import { assert, assertEquals, assertRejects } from "@std/assert";
import { EtcdEntries } from "../../services/catalog/sources/etcd/etcd_entries.ts";
import { REGISTRY_LAYOUT } from "../../services/catalog/sources/etcd/etcd_registry_layout.ts";
import { tunnelLayout } from "../../services/catalog/sources/etcd/etcd_tunnel_layout.ts";
import {
  CatalogDocumentError,
  readCatalogDocument,
} from "../../services/catalog/sources/document/catalog_document.ts";
import { serviceOfObject } from "../../services/catalog/sources/kubernetes/kubernetes_service.ts";
import { EndpointSlices } from "../../services/catalog/sources/kubernetes/endpoint_slices.ts";
import { TunnelDialError } from "../../client/dial_error.ts";
import {
  parseMinVersion,
  TlsOptionError,
} from "../../net/tls/trust/tls_options.ts";
import { GrpcError } from "../../proto/grpc/status.ts";
import { TYPE_URLS } from "../../proto/xds/resource.ts";
import { PolicyError, readPolicy } from "../../server/policy/authorization.ts";
import { DiscoveryRig } from "../support/xds/discovery_rig.ts";
import { RecordedErrors } from "../support/watch/recorded_errors.ts";
import { IdentityNode } from "../support/rigs/identity_node.ts";
import { IdentityRig } from "../support/rigs/identity_rig.ts";
import { KubeletRig } from "../support/rigs/kubelet_rig.ts";
import { RawCaller } from "../support/peers/raw_caller.ts";
import { endpointsOf, serviceOf } from "../support/watch/scripted_source.ts";
import { readToEnd, writeAll } from "../support/peers/sockets.ts";
import { Tunnel } from "../support/rigs/tunnel_harness.ts";

const NAMES: readonly string[] = Object.getOwnPropertyNames(Object.prototype);

/** In a place where upper case is another header, or none. */
const LOWER = NAMES.map((name) => name.toLowerCase());

/** A test in which nothing may be unforeseen. */
function test(what: string, run: () => void | Promise<void>): void {
  Deno.test(`names of Object.prototype: ${what}`, async () => {
    using recorded = new RecordedErrors();
    await run();
    assertEquals(recorded.errors, []);
  });
}

for (const carrier of ["streams", "packets"] as const) {
  test(`dials over ${carrier}`, async () => {
    await using tunnel = await Tunnel.linked(carrier);
    for (const name of NAMES) {
      const dials = [
        { protocol: name, address: "127.0.0.1:1" },
        { protocol: "tcp", address: name },
        { protocol: "tcp", address: `${name}.invalid:1` },
        { protocol: "unix", address: name },
        { protocol: name, address: name },
      ];
      for (const target of dials) {
        await assertRejects(
          () => tunnel.dial("grpc", { target }),
          TunnelDialError,
        );
      }
      const target = { protocol: "tcp", address: "127.0.0.1:1" };
      for (const node of [name, `${name}=${name}`, `host=${name}`]) {
        for (const protocol of ["grpc", "http-connect"] as const) {
          await assertRejects(
            () => tunnel.dial(protocol, { target, node }),
            Error,
          );
        }
      }
    }
    const { caller, target } = await tunnel.connect("grpc");
    caller.send("fine");
    await target.received(4);
  });
}

test("heads of CONNECT", async () => {
  await using tunnel = await Tunnel.linked("streams");
  for (const name of NAMES) {
    const heads = [
      `CONNECT ${name} HTTP/1.1\r\n`,
      `CONNECT ${name}:1 HTTP/${name}\r\n`,
      `CONNECT 127.0.0.1:1 HTTP/1.1\r\n${name}: ${name}\r\n`,
      `CONNECT 127.0.0.1:1 HTTP/1.1\r\nTunnel-Node: ${name}\r\n`,
    ];
    for (const head of heads) {
      const path = tunnel.socketPath;
      using conn = await Deno.connect({ transport: "unix", path });
      await writeAll(conn, new TextEncoder().encode(`${head}\r\n`));
      const answer = new TextDecoder().decode(await readToEnd(conn));
      assert(/^HTTP\/1\.1 [45]/.test(answer), `${head} ${answer}`);
    }
  }
});

test("methods and metadata of gRPC", async () => {
  await using tunnel = await Tunnel.linked("streams");
  for (const name of NAMES) {
    for (const path of [`/${name}`, `/${name}/${name}`, name]) {
      const caller = await RawCaller.open(tunnel.socketPath, path);
      await caller.receives(/^status (?:UNIMPLEMENTED|INTERNAL|UNKNOWN)/);
      caller.close();
    }
  }
});

test("agents and what they say they are", async () => {
  await using tunnel = await Tunnel.open();
  for (const carrier of ["streams", "packets"] as const) {
    for (const name of NAMES) {
      const { running } = await tunnel.link({
        carrier,
        agentId: name,
        identifiers: { host: [name], uid: [name] },
      });
      const { caller } = await tunnel.connect("grpc", { node: `uid=${name}` });
      caller.finish();
      const left = tunnel.log.next(/^agent gone/);
      running.stop("the next one comes");
      await left;
    }
  }
});

test("nodes that join", async () => {
  await using rig = await IdentityRig.open();
  const place = await rig.place();
  for (const name of NAMES) {
    const node = await IdentityNode.make(name);
    if (name === "constructor") {
      // One wrong token is enough: who shows many is slowed down.
      await assertRejects(() => node.join(place, name), GrpcError);
    }
    // Their letters are no node's, or they are names like others.
    await node.join(place, await rig.token()).catch((error) => {
      assert(error instanceof GrpcError, String(error));
    });
    await node.renewByProof(place).catch((error) => {
      assert(error instanceof GrpcError, String(error));
    });
  }
});

test("subscribers of discovery, and what they are told of", async () => {
  const services = NAMES.map((name) =>
    serviceOf(`${name.replaceAll("_", "-")}/${name}`)
  );
  await using rig = await DiscoveryRig.serving({
    services,
    endpoints: services.map(({ namespace, name }) =>
      endpointsOf(`${namespace}/${name}`, "10.0.0.1:80")
    ),
  });
  await rig.tunnel.link({
    identifiers: { host: ["edge"] },
    services: NAMES.map((name) => ({
      name,
      namespace: name,
      port: 80,
      protocol: name,
      appProtocol: name,
      host: name,
      targetPort: 80,
    })),
  });
  const probe = await rig.plain();
  for (const name of NAMES) {
    const node = {
      id: name,
      cluster: name,
      userAgentName: name,
      locality: { region: name, zone: name, subZone: name },
      metadata: {
        fields: Object.fromEntries([[name, { stringValue: name }]]),
      },
    };
    for (const kind of ["cluster", "endpoints"] as const) {
      const metadata = Object.fromEntries([[name.toLowerCase(), name]]);
      const stream = probe.sotw(metadata);
      stream.send({ node, typeUrl: TYPE_URLS[kind], resourceNames: [name] });
      stream.send({ typeUrl: name, resourceNames: [name] });
      stream.send({ typeUrl: `type.googleapis.com/${name}` });
      stream.send({
        typeUrl: TYPE_URLS[kind],
        versionInfo: name,
        responseNonce: name,
        errorDetail: { code: 3, message: name },
      });
      const delta = probe.delta();
      delta.send({
        node,
        typeUrl: TYPE_URLS[kind],
        resourceNamesSubscribe: [name],
        resourceNamesUnsubscribe: [name],
        initialResourceVersions: Object.fromEntries([[name, name]]),
      });
    }
    for (const path of PATHS) {
      const { admin } = rig.tunnel.server.addresses;
      const answer = await fetch(`http://${admin}${path(name)}`);
      await answer.body?.cancel();
      assert(answer.status < 500, `${path(name)}: ${answer.status}`);
    }
  }
  const stream = (await rig.plain()).sotw();
  stream.send({ node: { id: "honest" }, typeUrl: TYPE_URLS.cluster });
  const { resources = [] } = await stream.next("cluster");
  // The others are no names of services.
  const named = NAMES.filter((name) => !name.includes("_"));
  assertEquals(resources.length, named.length);
});

const PATHS: readonly ((name: string) => string)[] = [
  (name) => `/${name}`,
  (name) => `/debug/${name}`,
  (name) => `/v1/discovery/config?node=${name}`,
  (name) => `/v1/discovery/endpoints?${name}=${name}`,
  (name) => `/v1/discovery/sync?node=${name}`,
  (name) => `/readyz?${name}`,
];

test("requests to kubelets", async () => {
  await using rig = await KubeletRig.open();
  for (const name of NAMES) {
    for (
      const head of [
        `GET /${name} HTTP/1.1\r\nHost: ${name}\r\n\r\n`,
        `GET /${name} HTTP/1.1\r\nHost: ${rig.host}\r\n${name}: ${name}\r\n\r\n`,
        `${name} / HTTP/1.1\r\nHost: ${name}:10250\r\n\r\n`,
      ]
    ) {
      const caller = await rig.caller();
      await caller.say(head);
      assert(/^HTTP\/1\.1 \d/.test(await caller.rest()), head);
    }
  }
});

// Documents ------------------------------------------------------------------

/** A document with `name` wherever a key or a text may stand. */
function documentsWith(name: string): readonly unknown[] {
  const own = Object.fromEntries([[name, name]]);
  return [
    own,
    { services: own },
    { services: [own] },
    { services: [{ name, ports: [{ port: 80, ...own }] }] },
    { services: [{ name, namespace: name, ports: [{ name, port: 80 }] }] },
    { services: [{ name: "a", ports: [{ port: 80 }], balancer: name }] },
    {
      services: [{ name: "a", ports: [{ port: 80, protocol: name }] }],
    },
    { services: [{ name: "a", ports: [{ port: 80 }], endpoints: [own] }] },
    { allow: own, deny: [name] },
    { callers: [own] },
    { allow: [name], [name]: name },
  ];
}

test("catalog and policy files, in either form", () => {
  for (const name of NAMES) {
    for (const document of documentsWith(name)) {
      for (const text of formsOf(document)) {
        try {
          readCatalogDocument(text);
        } catch (error) {
          assert(error instanceof CatalogDocumentError, String(error));
        }
        for (const ending of ["json", "yaml"]) {
          try {
            readPolicy(`policy.${ending}`, text);
          } catch (error) {
            assert(error instanceof PolicyError, String(error));
          }
        }
      }
    }
  }
});

function formsOf(document: unknown): readonly string[] {
  const json = JSON.stringify(document);
  // YAML has it without the quotes, too.
  return [json, json.replaceAll(/"([A-Za-z_]+)"/g, "$1")];
}

test("keys and values of etcd", () => {
  for (const layout of [tunnelLayout(), REGISTRY_LAYOUT]) {
    const refused: string[] = [];
    const entries = new EtcdEntries(layout, (line) => refused.push(line));
    for (const name of NAMES) {
      for (const kind of ["services", "endpoints", "specs", name]) {
        for (const document of [name, ...documentsWith(name)]) {
          entries.put({
            key: `${layout.prefix}${kind}/${name}/${name}/${name}`,
            value: new TextEncoder().encode(JSON.stringify(document)),
            modRevision: 1n,
            lease: "0",
          });
          entries.put({
            key: `${layout.prefix}${kind}/${name}/${name}`,
            value: new TextEncoder().encode(
              JSON.stringify({ name, ports: [{ name, port: 80 }] }),
            ),
            modRevision: 1n,
            lease: "0",
          });
        }
      }
    }
    assert(refused.length > 0);
    assert(entries.services.length >= 0);
  }
  return Promise.resolve();
});

test("objects of Kubernetes", () => {
  const slices = new EndpointSlices();
  for (const name of NAMES) {
    const labels = Object.fromEntries([
      [name, name],
      ["kubernetes.io/service-name", name],
    ]);
    const metadata = {
      name,
      namespace: name,
      uid: name,
      resourceVersion: "1",
      labels,
      annotations: labels,
    };
    serviceOfObject({
      metadata,
      spec: {
        clusterIP: "10.0.0.1",
        type: name,
        ports: [{ name, port: 80, protocol: name }],
        sessionAffinity: name,
      },
    } as never);
    slices.put({
      metadata,
      addressType: name,
      endpoints: [{ addresses: [name], conditions: {}, zone: name }],
      ports: [{ name, port: 80, protocol: name }],
    } as never);
  }
  return Promise.resolve();
});

test("words of the command line", () => {
  for (const name of [...NAMES, ...LOWER]) {
    try {
      parseMinVersion(name);
    } catch (error) {
      assert(error instanceof TlsOptionError, String(error));
      continue;
    }
    throw new Error(`${name} is a version of TLS`);
  }
  return Promise.resolve();
});
