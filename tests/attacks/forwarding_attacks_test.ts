/**
 * Ways to be taken for another server, and so for any caller: who may say whose
 * dial it is says that it is an administrator's. The policy allows that one
 * alone; to get in is to be connected.
 *
 * @module
 */

import { assertEquals, assertMatch } from "@std/assert";
import { ThrowawayCa } from "../support/certificates/throwaway_ca.ts";
import type { CertificatePair } from "../support/certificates/throwaway_ca.ts";
import { memoryFolder } from "../support/memory/memory_folder.ts";
import { IdentityCaller } from "../support/rigs/identity_node.ts";
import { IdentityRig } from "../support/rigs/identity_rig.ts";
import { openFrontendStream } from "../../client/frontend_stream.ts";
import { connectTls } from "../../net/dial/server_connect.ts";
import { openClientConnection } from "../../net/http2/client_connection.ts";
import type { Stream } from "../../net/stream/stream.ts";
import { CertificateAuthority } from "../../platform/pki/authority.ts";
import {
  exportPrivateKey,
  generateKeyPair,
  importKeyPair,
} from "../../platform/pki/key_pair.ts";
import { makeSigningRequest } from "../../platform/pki/signing_request.ts";
import { systemTimers } from "../../platform/time/system_timers.ts";
import { Metadata } from "../../proto/grpc/metadata.ts";
import {
  isNodeName,
  TUNNEL_SERVER_NAME,
} from "../../proto/identity/node_name.ts";
import { Forwarded } from "../../proto/link/forwarding_messages.ts";
import { abandon } from "../../proto/link/dial_handler.ts";
import { dialProxy } from "../../proto/link/proxy_client.ts";
import { FORWARDED_FIELD } from "../../server/forwarding/forwarded_caller.ts";

const DAY_MS = 24 * 3600_000;

/** What a server says of an administrator's dial. */
const FORGED = Forwarded.encode({
  serverId: "s1",
  hasPolicy: true,
  caller: {
    remoteAddress: "10.0.0.1:50000",
    localAddress: "/run/admin.sock",
    certificate: { commonName: "admin", fingerprint: "f0".repeat(32) },
  },
});

/** A server with an agent, and a policy for one caller. */
class Scene implements AsyncDisposable {
  private constructor(
    readonly rig: IdentityRig,
    readonly foreign: ThrowawayCa,
  ) {}

  static async open(isForwarding = true): Promise<Scene> {
    const folder = memoryFolder();
    const policyFile = `${folder}/policy.json`;
    const caFile = `${folder}/ca.pem`;
    const foreign = await ThrowawayCa.create("another CA");
    const frontends = [{ commonName: "admin", allow: ["tcp:*:*"] }];
    await Deno.writeTextFile(policyFile, JSON.stringify({ frontends }));
    await Deno.writeTextFile(caFile, foreign.cert);
    const rig = await IdentityRig.open({ caFile }, undefined, {
      authorization: { policyFile },
      ...(isForwarding ? { peerForwarding: true } : {}),
    });
    await rig.link(await rig.joined("edge-7"));
    await Deno.remove(folder, { recursive: true });
    return new Scene(rig, foreign);
  }

  /** That of a server of the authority. */
  async serverPair(): Promise<CertificatePair> {
    const pem = await this.rig.state.readSecret("server.pem");
    const { privateKey } = await importKeyPair(pem);
    const cert = pem.slice(pem.indexOf("-----BEGIN CERTIFICATE"));
    return { cert, key: await exportPrivateKey(privateKey) };
  }

  /** What comes of a dial on the agent port, with these claims. */
  async onAgentPort(
    pair: CertificatePair | undefined,
    metadata: Metadata = new Metadata({ [FORWARDED_FIELD]: FORGED }),
  ): Promise<string> {
    const { port, ca } = await this.rig.place();
    const { cert, key } = pair ?? { cert: "", key: "" };
    try {
      const stream = await connectTls({
        host: "127.0.0.1",
        port,
        credentials: { ca, cert, key },
        alpn: ["h2"],
        serverName: TUNNEL_SERVER_NAME,
        proxyEnv: {},
        timeoutMs: 10_000,
      });
      return await this.#dial(stream, metadata);
    } catch (error) {
      return (error as Error).message;
    }
  }

  async onFrontend(metadata: Metadata): Promise<string> {
    const path = this.rig.tunnel.socketPath;
    const stream = await openFrontendStream({ kind: "unix", path }, "http2", {
      timers: systemTimers,
    });
    return await this.#dial(stream, metadata);
  }

  async #dial(stream: Stream, metadata: Metadata): Promise<string> {
    const connection = openClientConnection(stream, { timers: systemTimers });
    const { promise, resolve } = Promise.withResolvers<string>();
    const { address } = this.rig.tunnel.target;
    dialProxy(connection, { protocol: "tcp", address }, {
      onConnected: (conduit) => {
        abandon(conduit, "that is all");
        resolve("connected");
      },
      onFailed: ({ message }) => resolve(message),
    }, {
      authority: TUNNEL_SERVER_NAME,
      scheme: "https",
      timers: systemTimers,
      dialId: 1,
      metadata,
    });
    const outcome = await promise;
    connection.shutdown("the test is over");
    return outcome;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.rig[Symbol.asyncDispose]();
  }
}

/** A certificate with a server's name, of an authority that we have in hands. */
async function serverOf(ca: CertificateAuthority): Promise<CertificatePair> {
  const { publicKey, privateKey } = await generateKeyPair();
  const cert = await ca.issue({
    publicKey,
    commonName: TUNNEL_SERVER_NAME,
    names: [{ type: "dns", value: TUNNEL_SERVER_NAME }],
    usage: "both",
    notAfter: new Date(Date.now() + DAY_MS),
  });
  return { cert, key: await exportPrivateKey(privateKey) };
}

Deno.test("a server says whose dial it is, and nobody else does", async () => {
  await using scene = await Scene.open();
  const { rig, foreign } = scene;
  // The way that is closed to the others is open.
  assertEquals(await scene.onAgentPort(await scene.serverPair()), "connected");
  const thief = await rig.joined("thief");
  const asNode = await scene.onAgentPort(await thief.pair());
  assertMatch(
    asNode,
    /no rule of the server allows it \(no service that thief/,
  );
  assertMatch(await scene.onAgentPort(undefined), /it showed no certificate/);
  const claimed = new Metadata({ [FORWARDED_FIELD]: FORGED });
  assertMatch(
    await scene.onFrontend(claimed),
    /no frontends entry is about socket/,
  );
  // Of a CA that may issue certificates of agents here, but is not ours.
  for (const usage of ["client", "both"] as const) {
    const pair = await foreign.issue({
      commonName: TUNNEL_SERVER_NAME,
      names: [TUNNEL_SERVER_NAME],
      usage,
    });
    assertMatch(await scene.onAgentPort(pair), /no rule|Cannot/);
  }
});

Deno.test("no certificate with a server's name is to be had elsewhere", async () => {
  await using scene = await Scene.open();
  const { rig } = scene;
  const { current } = await rig.authorities();
  const named = await CertificateAuthority.create({
    commonName: () => current.facts.x509.subject.replace(/^CN=/, ""),
    notAfter: new Date(Date.now() + DAY_MS),
  });
  assertMatch(
    await scene.onAgentPort(await serverOf(named)),
    /^Cannot|^tls|^the server/,
  );
  assertEquals(isNodeName(TUNNEL_SERVER_NAME), false);
  const place = await rig.place();
  using caller = await IdentityCaller.open(place);
  const csr = await makeSigningRequest(await generateKeyPair());
  for (const name of [TUNNEL_SERVER_NAME, "Tunnel-Server", "tunnel-server."]) {
    const outcome = await caller.join(await rig.token(), name, csr).then(
      () => "joined",
      (error) => String(error),
    );
    assertMatch(outcome, /Cannot/, name);
  }
});

Deno.test("a server's certificate makes no agent's dial, no renewal and no dial of nobody", async () => {
  await using scene = await Scene.open();
  const { rig } = scene;
  const pair = await scene.serverPair();
  assertMatch(
    await scene.onAgentPort(pair, new Metadata()),
    /saw 0 fields tunnel-forwarded-bin/,
  );
  const node = new Metadata({ "tunnel-node": "edge-7" });
  assertMatch(await scene.onAgentPort(pair, node), /wanted whose dial it is/);
  using caller = await IdentityCaller.open(await rig.place(), pair);
  const csr = await makeSigningRequest(await generateKeyPair());
  for (const name of ["edge-7", TUNNEL_SERVER_NAME]) {
    const outcome = await caller.renew(name, csr).then(
      () => "renewed",
      (error) => String(error),
    );
    assertMatch(outcome, /Cannot|GrpcError/, name);
  }
});

Deno.test("a server that forwards nothing believes no server either", async () => {
  await using scene = await Scene.open(false);
  assertMatch(
    await scene.onAgentPort(await scene.serverPair()),
    /takes no dials of others; start all servers with --peer-forwarding/,
  );
});
