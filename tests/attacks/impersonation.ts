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
import { issueNodeCertificate } from "../../server/identity/node_certificate.ts";
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

/** Attacks by links; each is tried over both carriers. */
export const LINK_ATTACKS: readonly Attack[] = [
  {
    name: "another node's name as agent id",
    run: async (scene, carrier) =>
      await tryLink(scene, carrier, await scene.thief.pair(), {
        agentId: "victim",
      }),
  },
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
  {
    name: "no certificate, a joined node's name",
    run: (scene, carrier) =>
      tryLink(scene, carrier, "none", { agentId: "victim" }),
  },
  {
    name: "a certificate of another CA with the node's subject",
    run: async (scene, carrier) => {
      const ca = await ThrowawayCa.create("tunnel CA");
      const pair = await ca.issue({
        commonName: "node:victim",
        organizations: ["tunnel:agents"],
        names: ["victim"],
        usage: "client",
      });
      return await tryLink(scene, carrier, pair, { agentId: "victim" });
    },
  },
  {
    name: "another CA with the name of ours",
    run: async (scene, carrier) => {
      const { rig } = scene;
      const { current } = await rig.authorities();
      const fake = await CertificateAuthority.create({
        commonName: () => current.facts.x509.subject.replace(/^CN=/, ""),
        notAfter: new Date(Date.now() + DAY_MS),
      });
      const pair = await nodePair(fake, "victim", Date.now(), DAY_MS);
      return await tryLink(scene, carrier, pair, { agentId: "victim" });
    },
  },
  {
    name: "a chain that hangs below another node's certificate",
    run: async (scene, carrier) => {
      const { rig } = scene;
      const { cert, key } = await (await rig.joined("parent")).pair();
      const below = await belowLeaf(cert, key, "victim");
      return await tryLink(scene, carrier, below, { agentId: "victim" });
    },
  },
  {
    name: "the node's certificate, expired, with its key",
    run: async (scene, carrier) => {
      const { rig } = scene;
      const { current } = await rig.authorities();
      const before = Date.now() - 2 * DAY_MS;
      const pair = await nodePair(current, "victim", before, DAY_MS);
      return await tryLink(scene, carrier, pair, { agentId: "victim" });
    },
  },
  {
    // Our TLS library does not even let a client try; the server's verifies
    // the handshake's signature (RFC 8446 §4.4.3).
    name: "the node's certificate with another key",
    run: (scene) => tryForeignKey(scene, scene.victim.cert),
  },
  {
    name:
      "a good certificate of ours for the name, of a key it is not bound to",
    run: async (scene, carrier) => {
      const { rig } = scene;
      const { current } = await rig.authorities();
      const pair = await nodePair(current, "victim", Date.now(), DAY_MS);
      return await tryLink(scene, carrier, pair, { agentId: "victim" });
    },
  },
  {
    name: "a certificate of ours for a node that never joined",
    run: async (scene, carrier) => {
      const { rig } = scene;
      const { current } = await rig.authorities();
      const pair = await nodePair(current, "ghost", Date.now(), DAY_MS);
      return await tryLink(scene, carrier, pair, { agentId: "ghost" });
    },
  },
  {
    name: "the server's own certificate and key",
    run: async (scene, carrier) => {
      const { rig } = scene;
      const pem = await rig.state.readSecret("server.pem");
      const { privateKey } = await importKeyPair(pem);
      const cert = pem.slice(pem.indexOf("-----BEGIN CERTIFICATE"));
      const pair = { cert, key: await exportPrivateKey(privateKey) };
      return await tryLink(scene, carrier, pair, { agentId: "victim" });
    },
  },
  {
    name: "the CA's own certificate and key as an agent",
    run: async (scene, carrier) => {
      const { rig } = scene;
      const { current } = await rig.authorities();
      const pem = await current.export();
      const { privateKey } = await importKeyPair(pem);
      const key = await exportPrivateKey(privateKey);
      const pair = { cert: current.certificate, key };
      return await tryLink(scene, carrier, pair, { agentId: "victim" });
    },
  },
  {
    name: "a revoked node",
    run: async (scene, carrier) => {
      const { rig } = scene;
      const node = await rig.joined(`revoked-${carrier}`);
      await rig.nodes.change(node.name, (record) => ({
        ...record,
        state: "revoked",
      }));
      return await tryLink(scene, carrier, await node.pair(), {
        agentId: node.name,
      });
    },
  },
  {
    name: "a forgotten node's certificate after another joined by its name",
    run: async (scene, carrier) => {
      const { rig } = scene;
      const old = await rig.joined(`reborn-${carrier}`);
      await rig.nodes.forget(old.name, rig.tokens);
      await rig.joined(old.name);
      return await tryLink(scene, carrier, await old.pair(), {
        agentId: old.name,
      });
    },
  },
  {
    name: "a node that waits for approval, with a certificate from before",
    run: async (scene, carrier) => {
      const { rig } = scene;
      const node = await rig.joined(`waiting-${carrier}`);
      await rig.nodes.change(node.name, (record) => ({
        ...record,
        state: "pending",
      }));
      return await tryLink(scene, carrier, await node.pair(), {
        agentId: node.name,
      });
    },
  },
];

/** Attacks on the calls that give certificates. */
export const JOIN_ATTACKS: readonly Attack[] = [
  {
    name: "a token used up, on another key",
    run: async ({ rig }) => {
      const token = await rig.token();
      const place = await rig.place();
      await (await IdentityNode.make("owner")).join(place, token);
      return await tryJoin(rig, token, "owner");
    },
  },
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
  {
    name: "a good token, another node's name",
    run: async ({ rig }) => await tryJoin(rig, await rig.token(), "victim"),
  },
  {
    name: "a good token for other nodes",
    run: async ({ rig }) => {
      const token = await rig.token({ nodePattern: "shop-*" });
      return await tryJoin(rig, token, "edge-1");
    },
  },
  {
    name: "an expired token",
    run: async ({ rig }) =>
      await tryJoin(rig, await rig.token({ lifeMs: -1 }), "edge-2"),
  },
  {
    name: "a revoked token",
    run: async ({ rig }) => {
      const token = await rig.token();
      await rig.tokens.revoke(token.split(".")[2]!);
      return await tryJoin(rig, token, "edge-3");
    },
  },
  {
    name: "a token with a wrong secret",
    run: async ({ rig }) => {
      const token = await rig.token();
      const wrong = token.slice(0, -22) + "A".repeat(22);
      return await tryJoin(rig, wrong, "edge-4");
    },
  },
  {
    name: "a token id that is a path",
    run: async ({ rig }) => {
      const [prefix, pin, , secret] = (await rig.token()).split(".");
      const token = [prefix, pin, "../../nodes/victim", secret].join(".");
      return await tryJoin(rig, token, "edge-5");
    },
  },
  {
    name: "a node name that is a path",
    run: async ({ rig }) =>
      await tryJoin(rig, await rig.token(), "../nodes/victim"),
  },
  ...[
    "10.9.9.9",
    "10.9.2313",
    "0xa.9.9.9",
    "0xa090909",
    "168364297",
    "012.9.9.9",
    "1.2.3",
    "7",
    "fd00::9",
    "::ffff:10.9.9.9",
    "10.9.9.9.",
  ].map((name): Attack => ({
    name: `a node name that reads as an address, ${name}`,
    run: async ({ rig }) => await tryJoin(rig, await rig.token(), name),
  })),
  ...["db.internal", "abc"].map((name): Attack => ({
    name: `a node name that another node was granted, ${name}`,
    run: async ({ rig }) => await tryJoin(rig, await rig.token(), name),
  })),
  {
    name: "the name of the servers",
    run: async ({ rig }) =>
      await tryJoin(rig, await rig.token(), "tunnel-server"),
  },
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
  {
    name: "a request with the node's key, signed by another",
    run: async ({ rig, victim }) => {
      const { privateKey } = await generateKeyPair();
      const { publicKey } = victim.keys;
      const csr = await makeSigningRequest({ privateKey, publicKey });
      return await tryAsk(rig, async (caller) => {
        const token = await rig.token();
        return (await caller.join(token, "victim", csr)).enrolment?.certificate;
      });
    },
  },
  {
    name: "renewal by another node's certificate",
    run: async ({ rig, thief }) => {
      const mine = await thief.pair();
      const { csr } = await IdentityNode.make("victim");
      return await tryAsk(rig, async (caller) => {
        const { enrolment } = await caller.renew("victim", csr);
        return enrolment?.certificate;
      }, mine);
    },
  },
  {
    name: "renewal by proof of a key that is not bound",
    run: async ({ rig }) => {
      const fake = await IdentityNode.make("victim");
      return await tryAsk(rig, async (caller) => {
        const nonce = await caller.challenge();
        const proof = await fake.prove(nonce);
        return (await caller.renew("victim", fake.csr, nonce, proof))
          .enrolment?.certificate;
      });
    },
  },
  {
    name: "renewal with a recorded proof and its nonce, for another request",
    run: async ({ rig, victim }) => {
      const fake = await IdentityNode.make("victim");
      return await tryAsk(rig, async (caller) => {
        const nonce = await caller.challenge();
        const proof = await victim.prove(nonce);
        return (await caller.renew("victim", fake.csr, nonce, proof))
          .enrolment?.certificate;
      });
    },
  },
  {
    name: "a recorded request of the node, by another node's certificate",
    run: async ({ rig, victim, thief }) =>
      await tryAsk(rig, async (caller) => {
        const { enrolment } = await caller.renew("victim", victim.csr);
        return enrolment?.certificate;
      }, await thief.pair()),
  },
  {
    name: "a recorded request of the node, with a proof of another key",
    run: async ({ rig, victim, thief }) =>
      await tryAsk(rig, async (caller) => {
        const nonce = await caller.challenge();
        const proof = await thief.prove(nonce, victim.csr);
        return (await caller.renew("victim", victim.csr, nonce, proof))
          .enrolment?.certificate;
      }),
  },
  {
    name: "a recorded renewal, whole, from another server's challenge",
    run: async ({ rig, victim }) => {
      await using other = await Scene.open();
      using there = await IdentityCaller.open(await other.rig.place());
      const nonce = await there.challenge();
      const proof = await victim.prove(nonce);
      return await tryAsk(
        rig,
        async (caller) =>
          (await caller.renew("victim", victim.csr, nonce, proof))
            .enrolment?.certificate,
      );
    },
  },
  {
    name: "renewal with a nonce of one's own",
    run: async ({ rig, victim }) => {
      const nonce = crypto.getRandomValues(new Uint8Array(40));
      const proof = await victim.prove(nonce);
      return await tryAsk(
        rig,
        async (caller) =>
          (await caller.renew("victim", victim.csr, nonce, proof))
            .enrolment?.certificate,
      );
    },
  },
  {
    name: "renewal without any proof",
    run: ({ rig, victim }) =>
      tryAsk(
        rig,
        async (caller) =>
          (await caller.renew("victim", victim.csr)).enrolment?.certificate,
      ),
  },
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
  return await tryAsk(rig, async (caller) => {
    const { enrolment } = await caller.renew("victim", victim.csr);
    return enrolment?.certificate;
  }, pair);
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
