import { assertEquals } from "@std/assert";
import {
  type CertificatePair,
  ThrowawayCa,
} from "../support/certificates/throwaway_ca.ts";
import { openDialer } from "../../client/tunnel_dialer.ts";
import { TunnelDialError } from "../../client/dial_error.ts";
import { TYPE_URLS } from "../../proto/xds/resource.ts";
import { structOf } from "../../proto/xds/struct_data.ts";
import { virtualAddressOf } from "../../services/discovery/generate/virtual_addresses.ts";
import type { IdentityNode } from "../support/rigs/identity_node.ts";
import { announced, NodeRig } from "../support/rigs/node_rig.ts";
import { ProxyRig } from "../support/rigs/proxy_rig.ts";
import { eventually, portOf } from "../support/rigs/tunnel_harness.ts";
import { memoryFolder } from "../support/memory/memory_folder.ts";
import { ADS_PATHS } from "../../services/ads/ads_connection.ts";
import { namesIn, XdsProbe } from "../support/xds/xds_probe.ts";
import type { Outcome } from "../attacks/impersonation.ts";

const SECRET = "shop/secret:80";
const SINGLE_CLUSTERS =
  "/envoy.service.cluster.v3.ClusterDiscoveryService/StreamClusters";

const POLICY = {
  discovery: [
    { node: "victim", allow: ["*"] },
    { node: "thief", allow: ["default/*"] },
  ],
};

class DiscoveryScene implements AsyncDisposable {
  private constructor(
    readonly rig: NodeRig,
    readonly backends: ProxyRig,
    readonly victim: IdentityNode,
    readonly thief: IdentityNode,
    /** Of `shop/secret`, and of `default/web`, both on the victim. */
    readonly ports: { readonly secret: number; readonly web: number },
  ) {}

  static async open(): Promise<DiscoveryScene> {
    const folder = memoryFolder();
    const policyFile = `${folder}/policy.json`;
    await Deno.writeTextFile(policyFile, JSON.stringify(POLICY));
    const rig = await NodeRig.discovering({
      server: { authorization: { policyFile } },
    });
    // It is read at the start.
    await Deno.remove(folder, { recursive: true });
    const backends = new ProxyRig();
    const ports = {
      secret: backends.echo("secret: "),
      web: backends.echo("web: "),
    };
    const victim = await rig.joined("victim");
    await rig.link(victim, {
      services: [
        announced("secret", ports.secret, { namespace: "shop" }),
        announced("web", ports.web),
      ],
    });
    const thief = await rig.joined("thief");
    await rig.link(thief);
    const scene = new DiscoveryScene(rig, backends, victim, thief, ports);
    // Else what is refused may only not be there yet.
    await eventually("the victim is told", async () => {
      const pair = await victim.pair();
      return (await tryToHear(scene, { id: "victim", pair })).gotIn;
    });
    return scene;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.rig[Symbol.asyncDispose]();
    await this.backends[Symbol.asyncDispose]();
  }
}

/** One row of a table. */
interface DiscoveryAttack {
  readonly name: string;
  readonly run: (scene: DiscoveryScene) => Promise<Outcome>;
}

/** Who asks for discovery, as what. */
interface Question {
  readonly id: string;
  /** Absent: no certificate. */
  readonly pair?: CertificatePair;
  readonly fields?: Readonly<Record<string, string>>;
  readonly path?: string;
  /** What it calls itself in its second request. */
  readonly later?: string;
}

const asThief =
  (question: Omit<Question, "pair">) => async (scene: DiscoveryScene) =>
    await tryToHear(scene, { ...question, pair: await scene.thief.pair() });

const asNobody = (question: Question) => (scene: DiscoveryScene) =>
  tryToHear(scene, question);

/** Attacks on what is told. */
const HEARING_ATTACKS: readonly DiscoveryAttack[] = [
  ...["victim", "victim/envoy", "victim~envoy", "VICTIM", "thiefx", "thie"]
    .map((id) => ({ name: `node.id ${id}`, run: asThief({ id }) })),
  ...["thief/../victim", "thief~victim", "thief/victim"]
    .map((id) => ({ name: `node.id ${id}`, run: asThief({ id }) })),
  {
    name: "a relay's header and the victim's node.id",
    run: asThief({ id: "victim", fields: { "tunnel-relay": "1" } }),
  },
  {
    name: "a relay's header, and the victim's name behind the thief's",
    run: asThief({
      id: "x",
      fields: { "tunnel-relay": "1", "tunnel-connect": "127.0.0.1:1" },
    }),
  },
  {
    name: "another node.id in the second request",
    run: asThief({ id: "thief", later: "victim" }),
  },
  {
    name: "the service of one kind, with the victim's node.id",
    run: asThief({ id: "victim", path: SINGLE_CLUSTERS }),
  },
  {
    name: "the service of one kind, as itself",
    run: asThief({ id: "thief", path: SINGLE_CLUSTERS }),
  },
  { name: "no certificate", run: asNobody({ id: "victim" }) },
  {
    name: "no certificate, a relay's header",
    run: asNobody({ id: "victim", fields: { "tunnel-relay": "1" } }),
  },
  {
    name: "a token that is none",
    run: asNobody({ id: "victim", fields: { authorization: "Bearer t" } }),
  },
  {
    name: "a token that is none, beside the thief's certificate",
    run: asThief({ id: "victim", fields: { authorization: "Bearer t" } }),
  },
  {
    name: "a certificate of another CA with the victim's subject",
    run: async (scene) => {
      const ca = await ThrowawayCa.create("tunnel CA");
      const pair = await ca.issue({
        commonName: "node:victim",
        organizations: ["tunnel:agents"],
        names: ["victim"],
        usage: "client",
      });
      return await tryToHear(scene, { id: "victim", pair });
    },
  },
  {
    name: "the victim's certificate after it was revoked",
    run: async (scene) => {
      await revoke(scene, "victim");
      const pair = await scene.victim.pair();
      return await tryToHear(scene, { id: "victim", pair });
    },
  },
];

/** What the thief dials, and through which agent. */
function dialing(
  name: string,
  dialOf: (
    scene: DiscoveryScene,
  ) => { readonly address: string; readonly node?: string; protocol?: string },
): DiscoveryAttack {
  return {
    name,
    run: (scene) => tryToDial(scene, scene.thief, dialOf(scene)),
  };
}

const LOOPBACK = [
  "127.0.0.1",
  "localhost",
  "LOCALHOST.",
  "127.1",
  "2130706433",
  "0x7f000001",
  "0.0.0.0",
  "[::ffff:127.0.0.1]",
  "[::1]",
] as const;

/** Attacks on what can be reached. */
const REACHING_ATTACKS: readonly DiscoveryAttack[] = [
  ...LOOPBACK.map((host) =>
    dialing(`the hidden service's endpoint as ${host}`, ({ ports }) => ({
      address: `${host}:${ports.secret}`,
      node: "id=victim",
    }))
  ),
  ...["victim", "host=victim", "uid=victim", "cidr=0.0.0.0/0", "id=VICTIM"]
    .map((node) =>
      dialing(`the hidden service's endpoint by ${node}`, ({ ports }) => ({
        address: `127.0.0.1:${ports.secret}`,
        node,
      }))
    ),
  dialing("the hidden service's endpoint by nobody's name", ({ ports }) => ({
    address: `127.0.0.1:${ports.secret}`,
  })),
  dialing("the hidden service's virtual address", ({ ports }) => ({
    address: `[${virtualOf("victim")}]:${ports.secret}`,
  })),
  dialing("the virtual address, and another agent's name", ({ ports }) => ({
    address: `[${virtualOf("victim")}]:${ports.secret}`,
    node: "id=thief",
  })),
  dialing("another port of the victim's", () => ({
    address: "127.0.0.1:10250",
    node: "id=victim",
  })),
  dialing("the open service's address by UDP", ({ ports }) => ({
    address: `127.0.0.1:${ports.web}`,
    node: "id=victim",
    protocol: "udp",
  })),
  dialing("a unix socket of the victim's", () => ({
    address: "/run/docker.sock",
    node: "id=victim",
    protocol: "unix",
  })),
  dialing("the server's own admin port", ({ rig }) => ({
    address: `127.0.0.1:${portOf(rig.tunnel.server.addresses.admin)}`,
  })),
  dialing("a cloud's metadata", () => ({ address: "169.254.169.254:80" })),
  dialing("its own agent, at a port that it did not announce", ({ ports }) => ({
    address: `127.0.0.1:${ports.secret}`,
    node: "id=thief",
  })),
  {
    name: "the open service, revoked",
    run: async (scene) => {
      await revoke(scene, "thief");
      return await tryToDial(scene, scene.thief, {
        address: `127.0.0.1:${scene.ports.web}`,
        node: "id=victim",
      });
    },
  },
];

function virtualOf(agent: string): string {
  return virtualAddressOf({
    agent: { key: "id", value: agent },
    address: "127.0.0.1",
  });
}

async function revoke({ rig }: DiscoveryScene, name: string): Promise<void> {
  await rig.nodes.change(name, (record) => ({ ...record, state: "revoked" }));
}

/** Asks for all clusters; what it is told before it is refused counts. */
async function tryToHear(
  { rig, thief: { authorities: ca } }: DiscoveryScene,
  { id, pair, fields = {}, path = ADS_PATHS.sotw, later }: Question,
): Promise<Outcome> {
  try {
    using probe = await XdsProbe.tls(rig.tunnel.agentPort, {
      ...pair === undefined ? {} : { pair },
      ca,
    });
    const stream = probe.sotw(fields, path);
    const ask = (id: string, nonce = "") =>
      stream.send({
        node: {
          id,
          userAgentName: "tunnel",
          metadata: structOf({ tunnel: { http_11_proxy: true } }),
        },
        typeUrl: TYPE_URLS.cluster,
        resourceNames: nonce === "" ? [] : ["*", SECRET],
        responseNonce: nonce,
      });
    ask(id);
    let response = await stream.next("cluster");
    let names = namesIn("cluster", response);
    if (later !== undefined) {
      ask(later, response.nonce);
      response = await stream.next("cluster");
      names = [...names, ...namesIn("cluster", response)];
    }
    return { gotIn: names.includes(SECRET), reported: names.join(" ") };
  } catch (error) {
    return { gotIn: false, reported: (error as Error).message };
  }
}

/** Connects, and has an echo. */
async function tryToDial(
  { rig }: DiscoveryScene,
  as: IdentityNode,
  { address, node, protocol = "tcp" }: {
    readonly address: string;
    readonly node?: string;
    readonly protocol?: string;
  },
): Promise<Outcome> {
  const dialer = openDialer(await rig.route(as));
  try {
    const conduit = await dialer.dial({
      target: { protocol, address },
      ...node === undefined ? {} : { node },
    });
    conduit.reset("it is enough to be connected");
    return { gotIn: true, reported: "connected" };
  } catch (error) {
    if (!(error instanceof TunnelDialError)) throw error;
    return { gotIn: false, reported: error.message };
  } finally {
    dialer.close();
  }
}

// No node learns of, or reaches, what is another's: the whole table, by sockets.

/** TLS 1.3 tells a client that its certificate is none when it has gone on. */
const EXPLAINED =
  /^(?:default\/web:80|(?:The stream ended: [A-Z_]+ )?(?:Cannot |tls|the peer ))/;

async function attempt({ name, run }: DiscoveryAttack): Promise<void> {
  await using scene = await DiscoveryScene.open();
  const { gotIn, reported } = await run(scene);
  assertEquals(gotIn, false, `${name}: ${reported}`);
  // What is not explained is a bug of another kind.
  assertEquals(EXPLAINED.test(reported), true, `${name}: ${reported}`);
}

for (const attack of HEARING_ATTACKS) {
  Deno.test(`nobody learns of a hidden service by ${attack.name}`, () =>
    attempt(attack));
}

for (const attack of REACHING_ATTACKS) {
  Deno.test(`nobody reaches ${attack.name}`, () => attempt(attack));
}

Deno.test("an honest node learns of and reaches what the tables close to others", async () => {
  await using scene = await DiscoveryScene.open();
  const { thief, victim, ports } = scene;
  const hear = async (id: string, fields = {}) =>
    await tryToHear(scene, { id, fields, pair: await thief.pair() });
  for (const id of ["thief", "thief/envoy", "thief~envoy"]) {
    assertEquals((await hear(id)).reported, "default/web:80");
  }
  const relayed = await hear("victim", { "tunnel-relay": "1" });
  assertEquals(relayed.reported, "default/web:80");
  const dial = { address: `127.0.0.1:${ports.web}`, node: "id=victim" };
  assertEquals(await tryToDial(scene, thief, dial), {
    gotIn: true,
    reported: "connected",
  });
  const secret = { ...dial, address: `127.0.0.1:${ports.secret}` };
  assertEquals((await tryToDial(scene, victim, secret)).gotIn, true);
});
