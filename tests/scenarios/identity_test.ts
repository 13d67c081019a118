import { assert, assertEquals, assertRejects } from "@std/assert";
import { factsOf } from "../../host/pki/certificate.ts";
import { GrpcError, StatusCode } from "../../proto/grpc/status.ts";
import { IdentityCaller, IdentityNode } from "../support/identity_node.ts";
import { IdentityRig } from "../support/identity_rig.ts";

// A server with an identity of its own, and nodes that join it over sockets.

Deno.test("a node joins with a token, links and is reached", async () => {
  await using rig = await IdentityRig.open();
  const node = await rig.joined("edge-7");
  const { x509 } = factsOf(node.cert);
  assertEquals(x509.subject, "O=tunnel:agents\nCN=node:edge-7");
  assertEquals(x509.subjectAltName, "URI:tunnel://node/edge-7, DNS:edge-7");
  await rig.link(node, { identifiers: { host: ["edge-7"] } });
  const { caller, target } = await rig.tunnel.connect("grpc");
  caller.send("hello");
  await target.received(5);
  assertEquals(target.text, "hello");
});
