import { assert, assertEquals, assertRejects } from "@std/assert";
import { certificateFacts } from "../../platform/pki/certificate.ts";
import { GrpcError, StatusCode } from "../../proto/grpc/status.ts";
import { IdentityCaller, IdentityNode } from "../support/rigs/identity_node.ts";
import { IdentityRig } from "../support/rigs/identity_rig.ts";
import { Tunnel } from "../support/rigs/tunnel_harness.ts";

// A server with an identity of its own, and nodes that join it over sockets.

/** Wants a refusal of this status, with these words. */
async function refused(
  asking: Promise<unknown>,
  code: StatusCode,
  words: string,
): Promise<void> {
  const error = await assertRejects(() => asking, GrpcError, words);
  assertEquals((error as GrpcError).code, code);
}

Deno.test("a node waits until somebody approves it", async () => {
  await using rig = await IdentityRig.open();
  const place = await rig.place();
  const token = await rig.token({ needsApproval: true });
  const node = await IdentityNode.make("edge-7");
  const words = "edge-7 waits for approval: `tunnel node approve edge-7` on " +
    "the server";
  assertEquals(await node.join(place, token), words);
  assertEquals(await node.join(place, token), words);
  assertEquals(await node.renewByProof(place), words);
  assertEquals(node.cert, "");
  await rig.nodes.change("edge-7", (record) => ({
    ...record,
    state: "approved",
  }));
  assertEquals(await node.join(place, token), undefined);
  await rig.link(node);
});

Deno.test("a certificate is renewed by itself, and by proof of its key", async () => {
  await using rig = await IdentityRig.open();
  const place = await rig.place();
  const node = await rig.joined("edge-7");
  const serials = new Set([certificateFacts(node.cert).x509.serialNumber]);
  await node.renew(place);
  serials.add(certificateFacts(node.cert).x509.serialNumber);
  await node.renewByProof(place);
  serials.add(certificateFacts(node.cert).x509.serialNumber);
  assertEquals(serials.size, 3);
  const record = rig.nodes.read("edge-7")!;
  assert(serials.has(record.certificate!.serialNumber));
});

Deno.test("links of a revoked node end at once, with the reason", async () => {
  await using rig = await IdentityRig.open();
  for (const carrier of ["streams", "packets"] as const) {
    const node = await rig.joined(`${carrier}-7`);
    const agent = await rig.link(node, { carrier });
    const { caller } = await rig.tunnel.connect("grpc");
    const words = /the node was revoked \(stolen\)/;
    const isLost = agent.log.next(words);
    await rig.nodes.change(node.name, (record) => ({
      ...record,
      state: "revoked",
      reason: "stolen",
    }));
    await isLost;
    await caller.closed;
    await agent.log.next(words); // It tries again, and is refused.
    await refused(
      node.renew(await rig.place()),
      StatusCode.PERMISSION_DENIED,
      "the node was revoked (stolen)",
    );
    const isLinked = agent.log.next(/^linked to server$/);
    await rig.nodes.change(node.name, (record) => ({
      ...record,
      state: "approved",
    }));
    await isLinked; // Approving takes it back, without a new certificate.
    agent.running.stop("done");
    await agent.running.finished;
  }
});

Deno.test("a forgotten node has to join again, with any key", async () => {
  await using rig = await IdentityRig.open();
  const place = await rig.place();
  const node = await rig.joined("edge-7");
  const agent = await rig.link(node);
  const isRefused = agent.log.next(/this server knows no such node/);
  assert(await rig.nodes.forget("edge-7", rig.tokens));
  await isRefused;
  await refused(
    node.renewByProof(place),
    StatusCode.NOT_FOUND,
    "join again with a new token",
  );
  await rig.joined("edge-7");
});

Deno.test("who asks too often is told to wait, and fills no log", async () => {
  await using rig = await IdentityRig.open();
  using caller = await IdentityCaller.open(await rig.place());
  const { csr } = await IdentityNode.make("edge-7");
  const bad = (await rig.token()).slice(0, -1) + "A";
  const codes: StatusCode[] = [];
  while (codes.at(-1) !== StatusCode.RESOURCE_EXHAUSTED) {
    await caller.join(bad, "edge-7", csr).catch((error) =>
      codes.push((error as GrpcError).code)
    );
  }
  assert(codes.length < 15, `${codes.length} attempts`);
  const lines = rig.tunnel.log.matching(/^join refused/);
  assertEquals(lines.length, codes.length - 1);
  const calls = "tunnel_server_identity_calls_total";
  assertEquals(
    await rig.tunnel.metric(
      `${calls}{method="join",status="RESOURCE_EXHAUSTED"}`,
    ),
    1,
  );
});

Deno.test("a damaged record lets nobody in, and is named in the server's log", async () => {
  await using rig = await IdentityRig.open();
  const node = await rig.joined("edge-7");
  const agent = await rig.link(node);
  const path = rig.state.path("nodes/edge-7.json");
  const isRefused = agent.log.next(/cannot read what it knows about its nodes/);
  await Deno.truncate(path, 40);
  await isRefused;
  await rig.tunnel.log.until(
    new RegExp(`^Cannot use ${path}: .*tunnel node forget edge-7`),
  );
  await refused(
    node.renew(await rig.place()),
    StatusCode.UNAVAILABLE,
    "see the server's log",
  );
});

Deno.test("authorities that cannot be read leave those in use", async () => {
  await using rig = await IdentityRig.open();
  const place = await rig.place();
  const node = await rig.joined("edge-7");
  await rig.link(node);
  await Deno.truncate(rig.state.path("ca/roles.json"));
  rig.tunnel.server.reload();
  await rig.tunnel.log.until(/roles.json: it is empty.*stays in use$/);
  const stale = 'tunnel_server_reload_stale{kind="authorities"}';
  assertEquals(await rig.tunnel.metric(stale), 1);
  await node.renew(place);
  assertEquals(rig.tunnel.log.matching(/^agent gone/), []);
});

Deno.test("two servers over one directory give a token's only use away once", async () => {
  await using rig = await IdentityRig.open();
  await using other = await Tunnel.open({
    server: { agents: rig.agentOptions },
  });
  const [place, token] = [await rig.place(), await rig.token()];
  const places = [place, { ...place, port: other.agentPort }];
  const nodes = await Promise.all(
    Array.from({ length: 8 }, (_, index) => IdentityNode.make(`n${index}`)),
  );
  await Promise.all(
    nodes.map((node, index) =>
      node.join(places[index % 2]!, token).catch(() => {})
    ),
  );
  assertEquals(nodes.filter(({ cert }) => cert !== "").length, 1);
  // And both know the node that joined.
  const [joined] = nodes.filter(({ cert }) => cert !== "");
  for (const place of places) await joined!.renew(place);
});
