/**
 * Ways to speak for a node that one is not: everything that a thief, a
 * neighbour or a careless administrator may bring to the agent port.
 *
 * Each attack tries as hard as it can and says whether it got in. To get in is
 * to have a link by a name that is not one's own, or a certificate for it with
 * a key of one's own.
 *
 * @module
 */

import { CertificateAuthority } from "../../platform/pki/authority.ts";
import {
  exportPrivateKey,
  generateKeyPair,
  importKeyPair,
} from "../../platform/pki/key_pair.ts";
import { makeSigningRequest } from "../../platform/pki/signing_request.ts";
import {
  type CertificatePair,
  ThrowawayCa,
} from "../support/certificates/throwaway_ca.ts";
import type { Carrier } from "../../proto/link/link.ts";
import { issueNodeCertificate } from "../../server/identity/leaf_certificates.ts";
import { IdentityCaller, IdentityNode } from "../support/rigs/identity_node.ts";
import { IdentityRig } from "../support/rigs/identity_rig.ts";
import type {
  AgentConfig,
  TunnelAgent,
} from "../support/rigs/tunnel_harness.ts";

const DAY_MS = 24 * 3600_000;

/** A server, whom to rob, and who does it: a node that joined honestly. */
export class Scene implements AsyncDisposable {
  private constructor(
    readonly rig: IdentityRig,
    readonly victim: IdentityNode,
    readonly thief: IdentityNode,
  ) {}

  static async open(): Promise<Scene> {
    const rig = await IdentityRig.open();
    const victim = await rig.joined("victim", {
      identifiers: "ipv4=10.9.9.9&ipv6=fd00::9&host=DB.internal.&uid=ABC",
    });
    const thief = await rig.joined("thief", {
      identifiers: "cidr=10.2.0.0/16",
    });
    return new Scene(rig, victim, thief);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.rig[Symbol.asyncDispose]();
  }
}

/** What an attack came to. */
export interface Outcome {
  readonly gotIn: boolean;
  /** What the attacker was told. */
  readonly reported: string;
}

/** One row of the table. */
export interface Attack {
  readonly name: string;
  readonly run: (scene: Scene, carrier: Carrier) => Promise<Outcome>;
}

type PairOf = (
  scene: Scene,
  carrier: Carrier,
) => CertificatePair | "none" | Promise<CertificatePair | "none">;

/** A link by the victim's name, with whatever the attacker can show. */
function linking(name: string, pairOf: PairOf, agentId = "victim"): Attack {
  return {
    name,
    run: async (scene, carrier) =>
      await tryLink(scene, carrier, await pairOf(scene, carrier), { agentId }),
  };
}

/** A link of a node that has joined, and has been changed since. */
function linkingAs(
  node: string,
  name: string,
  change: (rig: IdentityRig, node: string) => Promise<unknown>,
): Attack {
  return {
    name,
    run: async (scene, carrier) => {
      const joined = await scene.rig.joined(`${node}-${carrier}`);
      await change(scene.rig, joined.name);
      return await tryLink(scene, carrier, await joined.pair(), {
        agentId: joined.name,
      });
    },
  };
}

/** A certificate as our authority issues it, for a key of the attacker's. */
function issued(name: string, agoMs = 0): PairOf {
  return async ({ rig }) => {
    const { current } = await rig.authorities();
    return await nodePair(current, name, Date.now() - agoMs, DAY_MS);
  };
}

/** Attacks by links; each is tried over both carriers. */
// deno-fmt-ignore: the columns are the point.
export const LINK_ATTACKS: readonly Attack[] = [
  linking("another node's name as agent id", ({ thief }) => thief.pair()),
  ...([
    ["host", { host: ["victim"] }],
    ["uid", { uid: ["victim"] }],
    ["ipv4", { ipv4: ["10.9.9.9"] }],
    ["ipv6", { ipv6: ["fd00::9"] }],
    ["host, as an address", { host: ["10.9.9.9"] }],
    ["cidr", { cidr: ["10.0.0.0/8"] }],
    ["cidr around the granted one", { cidr: ["10.2.0.0/15"] }],
    ["default-route", { defaultRoute: true }],
  ] as const).map(([key, identifiers]): Attack => ({
    name: `an identifier that was not granted: ${key}`,
    run: async (scene, carrier) =>
      await tryLink(scene, carrier, await scene.thief.pair(), { identifiers }),
  })),
  linking("no certificate, a joined node's name", () => "none"),
  linking(
    "a certificate of another CA with the node's subject",
    async () =>
      await (await ThrowawayCa.create("tunnel CA")).issue({
        commonName: "node:victim",
        organizations: ["tunnel:agents"],
        names: ["victim"],
        usage: "client",
      }),
  ),
  linking("another CA with the name of ours", async ({ rig }) => {
    const { current } = await rig.authorities();
    const fake = await CertificateAuthority.create({
      commonName: () => current.facts.x509.subject.replace(/^CN=/, ""),
      notAfter: new Date(Date.now() + DAY_MS),
    });
    return await nodePair(fake, "victim", Date.now(), DAY_MS);
  }),
  linking(
    "a chain that hangs below another node's certificate",
    async ({ rig }) => {
      const { cert, key } = await (await rig.joined("parent")).pair();
      return await belowLeaf(cert, key, "victim");
    },
  ),
  linking("the node's certificate, expired, with its key", issued("victim", 2 * DAY_MS)),
  {
    // Our TLS library does not even let a client try; the server's verifies
    // the handshake's signature (RFC 8446 §4.4.3).
    name: "the node's certificate with another key",
    run: (scene) => tryForeignKey(scene, scene.victim.cert),
  },
  linking("a good certificate of ours for the name, of a key it is not bound to", issued("victim")),
  linking("a certificate of ours for a node that never joined", issued("ghost"), "ghost"),
  linking("the server's own certificate and key", async ({ rig }) => {
    const pem = await rig.state.readSecret("server.pem");
    const cert = pem.slice(pem.indexOf("-----BEGIN CERTIFICATE"));
    return { cert, key: await keyIn(pem) };
  }),
  linking("the CA's own certificate and key as an agent", async ({ rig }) => {
    const { current } = await rig.authorities();
    const key = await keyIn(await current.export());
    return { cert: current.certificate, key };
  }),
  linkingAs("revoked", "a revoked node", (rig, node) => put(rig, node, "revoked")),
  linkingAs(
    "reborn",
    "a forgotten node's certificate after another joined by its name",
    async (rig, node) => {
      await rig.nodes.forget(node, rig.tokens);
      await rig.joined(node);
    },
  ),
  linkingAs("waiting",
    "a node that waits for approval, with a certificate from before", (rig, node) => put(rig, node, "pending")),
];

function put(rig: IdentityRig, node: string, state: "revoked" | "pending") {
  return rig.nodes.change(node, (record) => ({ ...record, state }));
}

async function keyIn(pem: string): Promise<string> {
  return await exportPrivateKey((await importKeyPair(pem)).privateKey);
}

/** Joins with a token, by a name. */
function joining(
  name: string,
  node: string,
  tokenOf: (rig: IdentityRig) => string | Promise<string> = (rig) =>
    rig.token(),
): Attack {
  return {
    name,
    run: async ({ rig }) => await tryJoin(rig, await tokenOf(rig), node),
  };
}

type Certificate = Uint8Array | undefined;

/** Asks for the victim's certificate anew. @param pairOf What it shows. */
function renewing(
  name: string,
  ask: (caller: IdentityCaller, scene: Scene) => Promise<Certificate>,
  pairOf?: (scene: Scene) => Promise<CertificatePair>,
): Attack {
  return {
    name,
    run: async (scene) => {
      const pair = await pairOf?.(scene);
      return await tryAsk(scene.rig, (caller) => ask(caller, scene), pair);
    },
  };
}

/** The answer to a renewal of the victim's, by whatever proof. */
async function renewal(
  caller: IdentityCaller,
  csr: IdentityNode["csr"],
  ...proof: [nonce: Uint8Array, proof: Uint8Array] | []
): Promise<Certificate> {
  return (await caller.renew("victim", csr, ...proof)).enrolment?.certificate;
}

/** Attacks on the calls that give certificates. */
// deno-fmt-ignore: the columns are the point.
export const JOIN_ATTACKS: readonly Attack[] = [
  joining("a token used up, on another key", "owner", async (rig) => {
    const token = await rig.token();
    await (await IdentityNode.make("owner")).join(await rig.place(), token);
    return token;
  }),
  {
    name: "a forgotten node's own key and the token that it joined with",
    run: async ({ rig }) => {
      const [place, token] = [await rig.place(), await rig.token()];
      const node = await IdentityNode.make("forgotten");
      await node.join(place, token);
      await rig.nodes.forget(node.name, rig.tokens);
      return await tryAsk(
        rig,
        async (caller) =>
          (await caller.join(token, node.name, node.csr)).enrolment
            ?.certificate,
      );
    },
  },
  joining("a good token, another node's name", "victim"),
  joining("a good token for other nodes", "edge-1", (rig) => rig.token({ nodePattern: "shop-*" })),
  joining("an expired token", "edge-2", (rig) => rig.token({ lifeMs: -1 })),
  joining("a revoked token", "edge-3", async (rig) => {
    const token = await rig.token();
    await rig.tokens.revoke(token.split(".")[2]!);
    return token;
  }),
  joining("a token with a wrong secret", "edge-4", async (rig) => (await rig.token()).slice(0, -22) + "A".repeat(22)),
  joining("a token id that is a path", "edge-5", async (rig) => {
    const [prefix, pin, , secret] = (await rig.token()).split(".");
    return [prefix, pin, "../../nodes/victim", secret].join(".");
  }),
  joining("a node name that is a path", "../nodes/victim"),
  ...["10.9.9.9", "10.9.2313", "0xa.9.9.9", "0xa090909", "168364297", "012.9.9.9", "1.2.3", "7", "fd00::9",
    "::ffff:10.9.9.9", "10.9.9.9."].map((name) => joining(`a node name that reads as an address, ${name}`, name)),
  ...["db.internal", "abc"].map((name) => joining(`a node name that another node was granted, ${name}`, name)),
  joining("the name of the servers", "tunnel-server"),
  {
    name: "a replayed request with a token of one's own, used with another key",
    run: async (scene) => {
      const { rig, victim } = scene;
      const token = await rig.token();
      using caller = await IdentityCaller.open(await rig.place());
      const answer = await caller.join(token, "victim", victim.csr);
      // It is for the victim's key, and so of no use.
      const cert = new TextDecoder().decode(answer.enrolment!.certificate);
      return await tryForeignKey(scene, cert);
    },
  },
  renewing(
    "a request with the node's key, signed by another",
    async (caller, { rig, victim }) => {
      const { privateKey } = await generateKeyPair();
      const { publicKey } = victim.keys;
      const csr = await makeSigningRequest({ privateKey, publicKey });
      const answer = await caller.join(await rig.token(), "victim", csr);
      return answer.enrolment?.certificate;
    },
  ),
  renewing("renewal by another node's certificate",
    async (caller) => await renewal(caller, (await IdentityNode.make("victim")).csr), ({ thief }) => thief.pair()),
  renewing("renewal by proof of a key that is not bound", async (caller) => {
    const fake = await IdentityNode.make("victim");
    const nonce = await caller.challenge();
    return await renewal(caller, fake.csr, nonce, await fake.prove(nonce));
  }),
  renewing(
    "renewal with a recorded proof and its nonce, for another request",
    async (caller, { victim }) => {
      const fake = await IdentityNode.make("victim");
      const nonce = await caller.challenge();
      return await renewal(caller, fake.csr, nonce, await victim.prove(nonce));
    },
  ),
  renewing("a recorded request of the node, by another node's certificate",
    (caller, { victim }) => renewal(caller, victim.csr), ({ thief }) => thief.pair()),
  renewing(
    "a recorded request of the node, with a proof of another key",
    async (caller, { victim, thief }) => {
      const nonce = await caller.challenge();
      const proof = await thief.prove(nonce, victim.csr);
      return await renewal(caller, victim.csr, nonce, proof);
    },
  ),
  renewing(
    "a recorded renewal, whole, from another server's challenge",
    async (caller, { victim }) => {
      await using other = await Scene.open();
      using there = await IdentityCaller.open(await other.rig.place());
      const nonce = await there.challenge();
      const proof = await victim.prove(nonce);
      return await renewal(caller, victim.csr, nonce, proof);
    },
  ),
  renewing(
    "renewal with a nonce of one's own",
    async (caller, { victim }) => {
      const nonce = crypto.getRandomValues(new Uint8Array(40));
      const proof = await victim.prove(nonce);
      return await renewal(caller, victim.csr, nonce, proof);
    },
  ),
  renewing("renewal without any proof", (caller, { victim }) => renewal(caller, victim.csr)),
];

/** As the server issues, but for a new key that nobody bound. */
async function nodePair(
  current: CertificateAuthority,
  name: string,
  nowMs: number,
  lifeMs: number,
): Promise<CertificatePair> {
  const { publicKey, privateKey } = await generateKeyPair();
  const trusted = {
    current,
    bundle: current.certificate,
    chain: current.certificate,
  };
  const { pem } = await issueNodeCertificate(
    trusted,
    name,
    publicKey,
    nowMs,
    lifeMs,
  );
  return { cert: pem, key: await exportPrivateKey(privateKey) };
}

/** A leaf signed with another leaf's key, both in one chain. */
async function belowLeaf(
  cert: string,
  key: string,
  name: string,
): Promise<CertificatePair> {
  const x509 = await import("@peculiar/x509");
  const parent = new x509.X509Certificate(cert);
  const { privateKey: signingKey } = await importKeyPair(key);
  const { publicKey, privateKey } = await generateKeyPair();
  const leaf = await x509.X509CertificateGenerator.create({
    subject: [{ O: ["tunnel:agents"] }, { CN: [`node:${name}`] }],
    issuer: parent.subject,
    publicKey,
    signingKey,
    signingAlgorithm: { name: "ECDSA", hash: "SHA-256" },
    notBefore: new Date(Date.now() - 60_000),
    notAfter: new Date(Date.now() + DAY_MS),
    extensions: [
      new x509.ExtendedKeyUsageExtension([x509.ExtendedKeyUsage.clientAuth]),
    ],
  });
  const chain = `${leaf.toString("pem")}\n${cert}`;
  return { cert: chain, key: await exportPrivateKey(privateKey) };
}

/** Runs a real agent with these credentials until it is in or is told. */
async function tryLink(
  { rig, thief }: Scene,
  carrier: Carrier,
  keyPair: CertificatePair | "none",
  lie: AgentConfig,
): Promise<Outcome> {
  const config = await rig.agentConfig(thief, { carrier, ...lie, keyPair });
  const agent = await rig.tunnel.agent(config);
  try {
    return await outcomeOf(agent);
  } finally {
    agent.running.stop("the attack is over");
    await agent.running.finished;
  }
}

async function outcomeOf({ log }: TunnelAgent): Promise<Outcome> {
  const { message } = await log.until(/^linked to server$|; trying again/);
  const gotIn = message === "linked to server";
  return { gotIn, reported: message.replace(/; trying again.*/, "") };
}

/** Renews with a certificate whose key the attacker does not have. */
async function tryForeignKey(
  { rig, victim }: Scene,
  cert: string,
): Promise<Outcome> {
  const { privateKey } = await generateKeyPair();
  const pair = { cert, key: await exportPrivateKey(privateKey) };
  return await tryAsk(rig, (caller) => renewal(caller, victim.csr), pair);
}

/** Asks for a certificate for a key of the attacker's own. */
async function tryJoin(
  rig: IdentityRig,
  token: string,
  name: string,
): Promise<Outcome> {
  const { csr } = await IdentityNode.make(name);
  return await tryAsk(
    rig,
    async (caller) =>
      (await caller.join(token, name, csr)).enrolment?.certificate,
  );
}

async function tryAsk(
  rig: IdentityRig,
  ask: (caller: IdentityCaller) => Promise<Uint8Array | undefined>,
  pair?: CertificatePair,
): Promise<Outcome> {
  try {
    using caller = await IdentityCaller.open(await rig.place(), pair);
    const certificate = await ask(caller);
    if (certificate === undefined) return { gotIn: false, reported: "pending" };
    return { gotIn: true, reported: "here is your certificate" };
  } catch (error) {
    return { gotIn: false, reported: (error as Error).message };
  }
}
