import { assert, assertEquals, assertRejects } from "@std/assert";
import { certificateFacts } from "../../platform/pki/certificate.ts";
import { NO_IDENTIFIERS } from "../../proto/peer/identifiers.ts";
import { GrpcError, StatusCode } from "../../proto/grpc/status.ts";
import {
  createAuthorities,
  loadAuthorities,
} from "../../server/identity/authorities.ts";
import { DirectoryStore } from "../../neighbours/store/directory_store.ts";
import { ThrowawayCa } from "../support/certificates/throwaway_ca.ts";
import { certificates } from "../support/certificates/certificates.ts";
import { IdentityNode } from "../support/rigs/identity_node.ts";
import { IdentityRig } from "../support/rigs/identity_rig.ts";
import { copyFolder } from "../support/program/copy_folder.ts";
import { memoryFolder } from "../support/memory/memory_folder.ts";
import { Tunnel } from "../support/rigs/tunnel_harness.ts";

// Our own authority beside others: a foreign one, none at all, and itself from
// a backup.

Deno.test("a server from a backup is the same server to its nodes", async () => {
  const folder = memoryFolder();
  let node: IdentityNode;
  let late: IdentityNode;
  {
    await using rig = await IdentityRig.open();
    node = await rig.joined("edge-7");
    await rig.joined("edge-8"); // Uses its token up.
    copyFolder(rig.state.root, `${folder}/restored`);
    late = await rig.joined("edge-9");
  }
  {
    await using rig = await IdentityRig.open({}, `${folder}/restored`);
    await rig.link(node);
    await node.renew({ port: rig.tunnel.agentPort, ca: node.authorities });
    // What happened after the backup is not in it: joining again mends that.
    const error = await assertRejects(
      async () => await late.renewByProof(await rig.place()),
      GrpcError,
      "join again with a new token",
    );
    assertEquals((error as GrpcError).code, StatusCode.NOT_FOUND);
    await late.join(await rig.place(), await rig.token());
    await rig.link(late);
  }
  await Deno.remove(folder, { recursive: true });
});

Deno.test("a second start makes nothing new", async () => {
  const folder = memoryFolder(); // Empty, so it is made into one.
  const agents = {
    address: { hostname: "127.0.0.1", port: 0 },
    allowAnonymous: false,
    alpnProtocols: [],
    keepaliveMs: 3600_000,
    identity: {
      stateDirectory: folder,
      serverNames: [],
      nodeCertificateLifeMs: 3600_000,
    },
  };
  const news = /made a certificate authority|issued a certificate/;
  for (const made of [2, 0]) {
    await using tunnel = await Tunnel.open({ server: { agents } });
    assertEquals(tunnel.log.matching(news).length, made);
  }
  await Deno.remove(folder, { recursive: true });
});

Deno.test("a foreign authority beside our own: each agent finds its server", async () => {
  const { ca, server, client } = await certificates();
  const folder = memoryFolder();
  const write = async (name: string, text: string) => {
    await Deno.writeTextFile(`${folder}/${name}`, text);
    return `${folder}/${name}`;
  };
  const keyPair = {
    certFile: await write("server.crt", server.cert),
    keyFile: await write("server.key", server.key),
  };
  const caFile = await write("ca.crt", ca);
  await using rig = await IdentityRig.open({ keyPair, caFile });
  // Asks for 127.0.0.1 and knows the foreign authority.
  const foreign = await rig.tunnel.link({
    agentId: "node1",
    keyPair: client,
    ca,
  });
  assertEquals(rig.tunnel.log.matching(/may be another agent/), []);
  // Asks for tunnel-server and knows ours.
  const node = await rig.joined("edge-7");
  await node.renew(await rig.place());
  assert(certificateFacts(node.cert).x509.subject.includes("edge-7"));
  // A foreign certificate does not take the name of a node that joined.
  const thief = await rig.tunnel.agent({
    agentId: "edge-7",
    keyPair: client,
    ca,
  });
  await thief.log.until(/that is the name of a node that joined/);
  foreign.running.stop("done");
  await Deno.remove(folder, { recursive: true });
});

Deno.test("a foreign authority that bears our authority's name issues no nodes", async () => {
  const root = memoryFolder();
  const { state } = await DirectoryStore.openOrCreate(root, createAuthorities);
  const { current } = await loadAuthorities(state);
  const fake = await ThrowawayCa.create(
    current.facts.x509.subject.replace(/^CN=/, ""),
  );
  const caFile = await Deno.makeTempFile();
  await Deno.writeTextFile(caFile, fake.cert);
  await using rig = await IdentityRig.open({ caFile }, root);
  const { ca } = await rig.place();
  for (const name of ["victim", "never-joined"]) {
    if (name === "victim") await rig.joined(name);
    const keyPair = await fake.issue({
      commonName: `node:${name}`,
      organizations: ["tunnel:agents"],
      names: [name],
      usage: "client",
    });
    const agent = await rig.tunnel.agent({ agentId: name, keyPair, ca });
    // It is a foreign agent like any other: it takes no joined node's name.
    await agent.log.until(
      name === "victim"
        ? /that is the name of a node that joined/
        : /^linked to server$/,
    );
  }
  await Deno.remove(caFile);
});

Deno.test("a foreign agent that takes another name is shown, or refused", async () => {
  await using warns = await Tunnel.open();
  await warns.link({ agentId: "somebody" });
  await warns.log.until(/^agent "somebody" may be another agent/);
  const mismatches = "tunnel_server_node_binding_mismatches_total";
  assertEquals(await warns.metric(mismatches), 1);
  await using enforces = await Tunnel.open({
    serverAgents: { nodeBinding: "enforce" },
  });
  const agent = await enforces.agent({ agentId: "somebody" });
  await agent.log.until(/does not say agent id "somebody"/);
  await enforces.link({ agentId: "node1" });
});

Deno.test("an anonymous agent goes when a node is granted what it announces", async () => {
  await using rig = await IdentityRig.open({ allowAnonymous: true });
  const { ca } = await rig.place();
  const identifiers = { ...NO_IDENTIFIERS, ipv4: ["10.0.0.7"] };
  const config = {
    keyPair: "none",
    ca,
    agentId: "anonymous",
    identifiers,
  } as const;
  const { log } = await rig.tunnel.link(config);
  const other = { ...identifiers, ipv4: ["10.0.0.8"] };
  await rig.tunnel.link({ ...config, agentId: "other", identifiers: other });
  await rig.joined("edge-7", { identifiers: "cidr=10.0.0.7/32" });
  await log.until(/identifier ipv4=10\.0\.0\.7: the node edge-7 was granted/);
  assertEquals(rig.tunnel.log.matching(/^agent gone/).length, 1);
  const isBack = rig.tunnel.log.next(/^agent linked$/);
  await rig.nodes.forget("edge-7", rig.tokens);
  await isBack;
});
