import { assert, assertEquals, assertMatch, assertRejects } from "@std/assert";
import tls from "node:tls";
import {
  AgentIdentity,
  joinAgain,
} from "../../agent/identity/agent_identity.ts";
import { hasJoined } from "../../agent/identity/agent_state.ts";
import { EnrolmentError } from "../../agent/identity/enrolment_error.ts";
import { CertificateAuthority } from "../../platform/pki/authority.ts";
import { certificateFacts } from "../../platform/pki/certificate.ts";
import {
  exportPrivateKey,
  generateKeyPair,
  P256,
} from "../../platform/pki/key_pair.ts";
import {
  activateAuthority,
  retireAuthority,
  rotateAuthority,
} from "../../server/identity/authorities.ts";
import { Machine } from "../support/rigs/enrolled_agent.ts";
import { IdentityRig } from "../support/rigs/identity_rig.ts";
import type { TunnelAgent } from "../support/rigs/tunnel_harness.ts";

// Agents that join by themselves, over sockets, and stay who they are.

const DAY_MS = 24 * 3600_000;

async function stop({ running }: TunnelAgent): Promise<void> {
  running.stop("done");
  await running.finished;
}

/** Puts another certificate of the node's key there: here one that ended. */
async function replaceCertificate(
  machine: Machine,
  authority: CertificateAuthority,
  ageMs = 9 * DAY_MS,
): Promise<void> {
  const { x509 } = certificateFacts(await machine.read("cert.pem"));
  const spki = x509.publicKey.export({ type: "spki", format: "der" });
  const publicKey = await crypto.subtle
    .importKey("spki", new Uint8Array(spki), P256, true, ["verify"]);
  const pem = await authority.issue({
    publicKey,
    commonName: `node:${machine.name}`,
    organizations: ["tunnel:agents"],
    usage: "client",
    notBefore: new Date(Date.now() - ageMs),
    notAfter: new Date(Date.now() - ageMs + 8 * DAY_MS),
  });
  await Deno.writeTextFile(`${machine.stateDirectory}/cert.pem`, pem);
}

Deno.test("an agent joins with a token, and needs none afterwards", async () => {
  await using rig = await IdentityRig.open();
  using machine = new Machine("edge-7");
  const token = await rig.token({ identifiers: "cidr=10.7.0.0/16" });
  const agent = await machine.link(rig, { token });
  const { x509 } = certificateFacts(await machine.read("cert.pem"));
  assertEquals(x509.subject, "O=tunnel:agents\nCN=node:edge-7");
  assertEquals(x509.subjectAltName, "URI:tunnel://node/edge-7, DNS:edge-7");
  const { caller, target } = await rig.tunnel.connect("grpc");
  caller.send("hello");
  await target.received(5);
  assertEquals(target.text, "hello");
  const [link] = rig.tunnel.log.matching(/^agent linked$/);
  assertEquals(link?.fields["agent"], "edge-7");
  await stop(agent);
  for (const { id } of await rig.tokens.list(Date.now())) {
    await rig.tokens.revoke(id);
  }
  // It also remembers where its servers are.
  const again = await machine.link(rig, { servers: [] });
  await stop(again);
  // A token that is given all the same is not looked at.
  await machine.link(rig, { token });
  assertEquals(machine.log.matching(/^joined/).length, 1);
});

Deno.test("what an identity keeps is on the disk when it has stopped", async () => {
  await using rig = await IdentityRig.open();
  using machine = new Machine("edge-7");
  await stop(await machine.link(rig, { token: await rig.token() }));
  const identity = await AgentIdentity.open(machine, {
    log: machine.log,
    servers: [],
    proxy: {},
    isPatient: false,
  });
  const address = "b.example:8091";
  const server = { serverId: "s2", instanceId: "bbbbbbbb", address };
  identity.keepServers([server]);
  await identity.stop();
  assertEquals(JSON.parse(await machine.read("servers.json")), [server]);
});

Deno.test("many nodes behind one address join one after the other, and none is slowed down", async () => {
  await using rig = await IdentityRig.open();
  const token = await rig.token({ uses: 20 });
  for (let index = 0; index < 20; index++) {
    using machine = new Machine(`edge-${index}`);
    await stop(await machine.link(rig, { token }));
  }
  assertEquals(rig.tunnel.log.matching(/break rules/), []);
});

for (const what of ["expired", "missing"] as const) {
  Deno.test(`a node whose certificate is ${what} gets a new one by its key`, async () => {
    await using rig = await IdentityRig.open();
    using machine = new Machine("edge-7");
    await stop(await machine.link(rig, { token: await rig.token() }));
    const { current } = await rig.authorities();
    if (what === "expired") await replaceCertificate(machine, current);
    else await Deno.remove(`${machine.stateDirectory}/cert.pem`);
    await machine.link(rig);
    const { notAfterMs } = certificateFacts(await machine.read("cert.pem"));
    assert(notAfterMs > Date.now());
    const reported = machine.log.matching(/expired on/).map((line) =>
      line.message
    );
    assertEquals(reported.length, what === "expired" ? 1 : 0);
    for (const line of reported) assertMatch(line, /; it renews itself before/);
  });
}

Deno.test("a node that was revoked meanwhile is told so", async () => {
  await using rig = await IdentityRig.open();
  using machine = new Machine("edge-7");
  await stop(await machine.link(rig, { token: await rig.token() }));
  await replaceCertificate(machine, (await rig.authorities()).current);
  await rig.nodes.change("edge-7", (record) => ({
    ...record,
    state: "revoked",
    reason: "stolen",
  }));
  const isTold = machine.log.next(
    /^Cannot renew the certificate of edge-7: the node was revoked \(stolen\)/,
  );
  await machine.start(rig);
  assertEquals((await isTold).level, "warn");
  await Deno.remove(`${machine.stateDirectory}/cert.pem`);
  await assertRejects(
    () => machine.start(rig),
    EnrolmentError,
    "the node was revoked (stolen)",
  );
});

Deno.test("a join that is refused ends with the server's reason", async () => {
  await using rig = await IdentityRig.open();
  const token = await rig.token({ nodePattern: "shop-*" });
  using wrong = new Machine("edge-7");
  await assertRejects(
    () => wrong.start(rig, { token }),
    EnrolmentError,
    "this token is for nodes named shop-*",
  );
  using right = new Machine("shop-1");
  await right.start(rig, { token });
  // Set up anew: another key for a name that is taken.
  using anew = new Machine("shop-1");
  const other = await rig.token();
  await assertRejects(
    () => anew.start(rig, { token: other }),
    EnrolmentError,
    "`tunnel node forget shop-1` on the server",
  );
  using nobody = new Machine("edge-8");
  await assertRejects(
    () => nobody.start(rig),
    EnrolmentError,
    "this node has not joined",
  );
});

Deno.test("a node that was forgotten joins again with the key it has", async () => {
  await using rig = await IdentityRig.open();
  using machine = new Machine("edge-7");
  const { stateDirectory, name, log } = machine;
  await stop(await machine.link(rig, { token: await rig.token() }));
  const key = await machine.read("key.pem");
  await rig.nodes.forget("edge-7", rig.tokens);
  await joinAgain({ stateDirectory, node: name, token: await rig.token() }, {
    servers: [{ host: "127.0.0.1", port: rig.tunnel.agentPort }],
    log,
    proxy: {},
    isPatient: false,
  });
  await machine.link(rig);
  assertEquals(await machine.read("key.pem"), key);
});

for (const carrier of ["streams", "packets"] as const) {
  Deno.test(`a link that is refused is a warning, once, over ${carrier}`, async () => {
    await using rig = await IdentityRig.open();
    using machine = new Machine("edge-7");
    await stop(await machine.link(rig, { token: await rig.token() }));
    await rig.nodes.change("edge-7", (record) => ({
      ...record,
      state: "revoked",
    }));
    const refused = /^Cannot admit edge-7: the node was revoked/;
    const first = machine.log.next(refused);
    await machine.start(rig, { carriers: [carrier] });
    assertEquals((await first).level, "warn");
    assertEquals((await machine.log.next(refused)).level, "event");
  });
}

// deno-fmt-ignore: the columns are the point.
const DAMAGES: readonly [what: string, damage: (path: string) => Promise<void>][] = [
  ["cut",     (path) => Deno.truncate(path, 200)],
  ["emptied", (path) => Deno.truncate(path)],
  ["removed", (path) => Deno.remove(path)],
];

for (const [what, damage] of DAMAGES) {
  Deno.test(`an agent whose certificate was ${what} while it ran gets another, and follows the authority`, async () => {
    await using rig = await IdentityRig.open();
    using machine = new Machine("edge-7");
    const agent = await machine.link(rig, { token: await rig.token() });
    for (const change of [rotateAuthority, activateAuthority]) {
      const isRenewed = machine.log.next(/^certificate renewed$/);
      await damage(`${machine.stateDirectory}/cert.pem`);
      const isTaken = machine.log.next(/authorities have changed$/);
      await change(rig.state);
      await Promise.all([isRenewed, isTaken]);
      const { bundle } = await rig.authorities();
      assertEquals(await machine.read("ca.pem"), bundle);
      if (change === activateAuthority) break;
      certificateFacts(await machine.read("cert.pem"));
    }
    const { current } = await rig.authorities();
    const { x509 } = certificateFacts(await machine.read("cert.pem"));
    assert(x509.verify(current.facts.x509.publicKey));
    await stop(agent);
    await machine.link(rig);
  });
}

/** Somebody in the middle, who receives what is said inside of TLS. */
async function middleman(chain: string, keys: CryptoKeyPair) {
  const received: number[] = [];
  let connections = 0;
  const server = tls.createServer({
    cert: chain,
    key: await exportPrivateKey(keys.privateKey),
    ALPNProtocols: ["h2"],
    requestCert: true,
    rejectUnauthorized: false,
  }, (socket) => {
    socket.on("data", (chunk: Uint8Array) => received.push(...chunk));
    socket.on("error", () => {});
    socket.on("end", () => socket.end());
  });
  server.on("connection", () => connections++);
  server.on("tlsClientError", () => {});
  await new Promise<void>((resolve) =>
    server.listen(0, "127.0.0.1", () => resolve())
  );
  return {
    received,
    connections: () => connections,
    address: {
      host: "127.0.0.1",
      port: (server.address() as { port: number }).port,
    },
    [Symbol.dispose]: () => void server.close(),
  };
}

Deno.test("somebody in the middle receives neither the secret nor a request", async () => {
  await using rig = await IdentityRig.open();
  const token = await rig.token();
  const { bundle } = await rig.authorities();
  const theirs = await CertificateAuthority.create({
    commonName: () => "tunnel CA",
    notAfter: new Date(Date.now() + DAY_MS),
  });
  const keys = await generateKeyPair();
  const leaf = await theirs.issue({
    publicKey: keys.publicKey,
    commonName: "tunnel-server",
    names: [{ type: "dns", value: "tunnel-server" }],
    usage: "server",
    notAfter: new Date(Date.now() + DAY_MS),
  });
  for (
    const [chain, words] of [
      [leaf + theirs.certificate, "is not the one that made this token"],
      // The true authority's certificate is no secret: anybody can show it.
      [leaf + bundle, "was not signed by a CA that is trusted here"],
    ] as const
  ) {
    using machine = new Machine("edge-7");
    using middle = await middleman(chain, keys);
    const { stateDirectory, name, log } = machine;
    const joining = AgentIdentity.open({ stateDirectory, node: name, token }, {
      servers: [middle.address],
      log,
      proxy: {},
      isPatient: false,
    });
    await assertRejects(() => joining, EnrolmentError, words);
    assert(middle.connections() > 0);
    assertEquals(middle.received, []);
    assertEquals(hasJoined(stateDirectory), false);
  }
  assertEquals(rig.nodes.read("edge-7"), undefined);
});

Deno.test("agents follow a change of the authority, and nothing is dropped", async () => {
  await using rig = await IdentityRig.open();
  using machine = new Machine("edge-7");
  const agent = await machine.link(rig, { token: await rig.token() });
  const { caller, target } = await rig.tunnel.connect("grpc");
  const before =
    certificateFacts(await machine.read("cert.pem")).x509.serialNumber;
  const step = async (change: typeof rotateAuthority) => {
    const isTaken = machine.log.next(/authorities have changed$/);
    await change(rig.state);
    await isTaken;
    const { bundle } = await rig.authorities();
    assertEquals(await machine.read("ca.pem"), bundle);
  };
  await step(rotateAuthority);
  assertEquals(
    certificateFacts(await machine.read("cert.pem")).x509.serialNumber,
    before,
  );
  const isRenewed = machine.log.next(/^certificate renewed$/);
  await step(activateAuthority);
  await isRenewed;
  const { current } = await rig.authorities();
  const { x509 } = certificateFacts(await machine.read("cert.pem"));
  assert(x509.verify(current.facts.x509.publicKey));
  await step(retireAuthority);
  caller.send("still there");
  await target.received(11);
  assertEquals(target.text, "still there");
  // And the next link is made with all of the new.
  await stop(agent);
  await machine.link(rig);
});
