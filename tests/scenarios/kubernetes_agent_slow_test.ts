/**
 * Agents whose certificates the cluster issues, over their lives.
 *
 * @module
 */

import { agentRoutes } from "../../admin/agent/agent_routes.ts";
import { assert, assertEquals } from "@std/assert";
import { startKubernetesAgent } from "../../agent/kubernetes_agent.ts";
import {
  API_CLIENT_SIGNER,
  CLIENT_USAGES,
} from "../../neighbours/kubernetes/csr.ts";
import { KubernetesIdentity } from "../../agent/identity/cluster/kubernetes_identity.ts";
import { certificates } from "../support/certificates/certificates.ts";
import { FakeApiServer } from "../support/peers/fake_apiserver.ts";
import { FakeSigner } from "../support/memory/fake_signer.ts";
import { inMemoryFolder } from "../support/memory/memory_folder.ts";
import { RecordedLog } from "../support/watch/recorded_log.ts";
import { Tunnel } from "../support/rigs/tunnel_harness.ts";
import { patience } from "../support/watch/patience.ts";

/** X.509 counts seconds, so a certificate has one less than this at least. */
const LIFE_MS = Math.ceil(patience(3_000));

const ISSUED = /^the cluster has issued a certificate$/;

const SPEC = {
  signerName: API_CLIENT_SIGNER,
  usages: CLIENT_USAGES,
  commonName: "tunnel-agent-client",
  organizations: ["openyurt:yurttunnel"],
  dnsNames: ["edge1"],
  ipAddresses: [],
  expirationSeconds: 600,
};

/** A cluster that signs at once whatever it is asked for. */
class Cluster implements AsyncDisposable {
  private constructor(
    readonly server: FakeApiServer,
    readonly signer: FakeSigner,
  ) {
    void this.#sign();
  }

  static async start(): Promise<Cluster> {
    const server = FakeApiServer.start();
    return new Cluster(server, await FakeSigner.of(server));
  }

  /** Writes how to reach it. */
  async describe(path: string): Promise<void> {
    const text = JSON.stringify({
      "current-context": "main",
      clusters: [{ name: "main", cluster: { server: this.server.url } }],
      contexts: [{ name: "main", context: { cluster: "main" } }],
    });
    await Deno.writeTextFile(path, text);
  }

  /** How many certificates were asked for. */
  get asked(): number {
    return this.server.log.filter((line) => line.startsWith("POST ")).length;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.server[Symbol.asyncDispose]();
  }

  async #sign(): Promise<void> {
    while (true) {
      const { query } = await this.server.nextWatch();
      const [, name] = query.get("fieldSelector")!.split("=");
      await this.signer.grant(name!, Date.now() + LIFE_MS);
    }
  }
}

Deno.test("renewals drop no conduit, and the next link shows the newest certificate", () =>
  inMemoryFolder(async (folder) => {
    await using cluster = await Cluster.start();
    const caFile = `${folder}/cluster.crt`;
    const { certificate } = cluster.signer.authority;
    await Deno.writeTextFile(caFile, certificate);
    const kubeconfig = `${folder}/kubeconfig`;
    await cluster.describe(kubeconfig);
    const serverCaFile = `${folder}/ca.crt`;
    await Deno.writeTextFile(serverCaFile, (await certificates()).ca);
    await using tunnel = await Tunnel.open({
      serverAgents: { caFile, nodeBinding: "enforce" },
    });
    const log = new RecordedLog();
    const linked = tunnel.log.next(/^agent linked$/);
    const running = await startKubernetesAgent(
      await tunnel.agentOptions({
        agentId: "edge1",
        identifiers: { host: ["edge1"] },
        keyPair: "none",
        serverPort: tunnel.newLine().port,
      }),
      {
        api: { kubeconfig },
        certificate: {
          directory: `${folder}/pki`,
          component: "agent",
          spec: SPEC,
        },
        caFile: serverCaFile,
      },
      { log, proxy: {}, show: agentRoutes },
    );
    tunnel.agents.push({ running, log });
    await linked;
    const { caller, target } = await tunnel.connect("grpc");
    let bytes = 0;
    const exchange = async () => {
      caller.send("more");
      await target.received(bytes += 4);
    };
    await exchange();
    // After two renewals the first certificate has expired.
    for (let renewal = 1; renewal <= 2; renewal++) {
      await log.next(ISSUED);
      await exchange();
    }
    await log.next(ISSUED);
    assertEquals(tunnel.log.matching(/^agent linked$/).length, 1);
    const again = tunnel.log.next(/^agent linked$/);
    tunnel.cut();
    await again;
    assert(tunnel.log.matching(/refused|may be somebody/).length === 0);
  }));

Deno.test("a bootstrap kubeconfig serves until there is a certificate, and then the other one", () =>
  inMemoryFolder(async (folder) => {
    await using setUp = await Cluster.start();
    await using cluster = await Cluster.start();
    const kubeconfig = `${folder}/kubelet.conf`;
    const bootstrap = `${folder}/bootstrap.conf`;
    await setUp.describe(bootstrap);
    const caFile = `${folder}/ca.crt`;
    await Deno.writeTextFile(caFile, (await certificates()).ca);
    const log = new RecordedLog();
    const identity = await KubernetesIdentity.open({
      api: { kubeconfig },
      bootstrap: { kubeconfig: bootstrap },
      certificate: {
        directory: `${folder}/pki`,
        component: "agent",
        spec: SPEC,
      },
      caFile,
    }, log);
    try {
      await identity.first();
      assertEquals([setUp.asked, cluster.asked], [1, 0]);
      // The kubelet has not written it yet; that is said, and tried again.
      await log.next(/there is no such file/);
      await cluster.describe(kubeconfig);
      await log.next(ISSUED);
      assertEquals([setUp.asked, cluster.asked], [1, 1]);
      assertEquals(identity.problem, undefined);
    } finally {
      identity.stop();
    }
  }));
