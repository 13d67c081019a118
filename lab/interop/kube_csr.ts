/**
 * Agents whose certificate the cluster issues: asked for by a node, approved by
 * our server (or not), signed by kube-controller-manager, shown to servers of
 * ours and Konnectivity's; and servers that are found by a Service.
 *
 * The rights are those of deploy/kubernetes/csr.yaml.
 *
 * @module
 */

import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import {
  API_CLIENT_SIGNER,
  CLIENT_USAGES,
} from "../../neighbours/kubernetes/csr.ts";
import type { CertificateSigningRequest } from "../../neighbours/kubernetes/objects.ts";
import {
  CERTIFICATE_SIGNING_REQUESTS,
  objectPathOf,
} from "../../neighbours/kubernetes/paths.ts";
import { readCertificates } from "../../platform/pki/certificate.ts";
import { generateKeyPair } from "../../platform/pki/key_pair.ts";
import {
  makeNamedRequest,
  type RequestedNames,
} from "../../platform/pki/named_request.ts";
import { CLOUD_NODES } from "../../agent/identity/cluster/service_discovery.ts";
import { Child } from "../../tests/support/program/child.ts";
import { freePort } from "../../tests/support/program/ports.ts";
import {
  type Maker,
  ourCommand,
  type RunningServer,
} from "../../tests/support/program/tunnel.ts";
import {
  boundToken,
  clientOf,
  eventually,
  getsIn,
  type KubeCases,
  Runs,
} from "./kube_case.ts";
import { FOLDER } from "./kube_manifests.ts";

const NODE_NAMES: RequestedNames = {
  commonName: "tunnel-agent-client",
  organizations: ["openyurt:yurttunnel"],
  dnsNames: [],
  ipAddresses: [],
};

/** The Service that agents look for. */
const SERVICE = { name: "x-tunnel-server-svc", namespace: "kube-system" };

/** Servers and agents of one case, and those they talk to the cluster as. */
class CsrCase extends Runs {
  /** A server with a certificate of the cluster; it approves what it should. */
  async server(
    maker: Maker,
    flags: readonly string[] = [],
  ): Promise<RunningServer> {
    const { cluster } = this.context;
    const pair = await cluster.issue("tunnel-server", {
      commonName: "tunnel-server",
      usage: "server",
      names: ["127.0.0.1", "x-tunnel-server-svc"],
    });
    return await this.start(maker, [
      "--v=4",
      `--cluster-cert=${pair.cert}`,
      `--cluster-key=${pair.key}`,
      `--cluster-ca-cert=${cluster.caFile}`,
      ...flags,
    ]);
  }

  /** The flags of a server that approves, with no more rights than that takes. */
  async approver(): Promise<string[]> {
    await this.#roles();
    const { cluster } = this.context;
    const kubeconfig = await cluster.user("tunnel-approver");
    await cluster.bind("tunnel-server-csr", "User", "tunnel-approver");
    return [
      "--csr-approver",
      "--csr-approver-service-account=kube-system/yurt-agent",
      `--kubeconfig=${kubeconfig}`,
      "--node-binding=enforce",
    ];
  }

  /** A node of the cluster at 127.0.0.1; @returns its kubelet's kubeconfig. */
  async node(name: string): Promise<string> {
    const { cluster } = this.context;
    await cluster.apply([{ kind: "Node", metadata: { name } }]);
    const addresses = [{ type: "InternalIP", address: "127.0.0.1" }];
    await cluster.patchStatus(`node/${name}`, { addresses });
    return await cluster.user(`system:node:${name}`, ["system:nodes"]);
  }

  /** The kubeconfig of a Pod's bound token, on that node. */
  async pod(node: string): Promise<string> {
    const { cluster } = this.context;
    await this.#roles();
    const account = "yurt-agent";
    await cluster.bind("tunnel-agent-csr", "ServiceAccount", account);
    const token = await boundToken(this.context, node, account);
    return await cluster.kubeconfig(`yurt-agent-${node}`, { token });
  }

  /** An agent of ours with yurttunnel's command line; nobody waits for it. */
  agent(node: string, kubeconfig: string, flags: readonly string[]) {
    const { workspace } = this.context;
    const metaPort = freePort();
    const directory = workspace.path("pki");
    const child = new Child({
      name: "yurttunnel-agent",
      command: [
        ...ourCommand("yurttunnel-agent"),
        `--node-name=${node}`,
        "--node-ip=127.0.0.1",
        `--kube-config=${kubeconfig}`,
        `--cert-dir=${directory}`,
        `--meta-port=${metaPort}`,
        ...flags,
      ],
      logFile: workspace.path("yurttunnel-agent.log"),
    });
    const healthUrl = `http://127.0.0.1:${metaPort}`;
    return this.own({ child, healthUrl, directory });
  }

  /** Asks for a certificate as whoever that kubeconfig is; @returns its name. */
  async ask(
    kubeconfig: string,
    names: Partial<RequestedNames>,
  ): Promise<string> {
    using client = clientOf(this.context, kubeconfig);
    const keys = await generateKeyPair();
    const pem = await makeNamedRequest(keys, { ...NODE_NAMES, ...names });
    const { metadata } = await client.create<CertificateSigningRequest>(
      objectPathOf(CERTIFICATE_SIGNING_REQUESTS),
      {
        apiVersion: CERTIFICATE_SIGNING_REQUESTS.apiVersion,
        kind: "CertificateSigningRequest",
        metadata: { generateName: "csr-" },
        spec: {
          request: btoa(pem),
          signerName: API_CLIENT_SIGNER,
          usages: CLIENT_USAGES,
        },
      },
    );
    return metadata.name!;
  }

  /** What was decided about a request, and why. */
  async decision(name: string): Promise<string> {
    using client = clientOf(this.context);
    const path = objectPathOf(CERTIFICATE_SIGNING_REQUESTS, { name });
    const { status } = await client.get<CertificateSigningRequest>(path);
    const [condition] = status?.conditions ?? [];
    return condition === undefined
      ? ""
      : `${condition.type}: ${condition.message}`;
  }

  /** The Service that agents look for, with this annotation or none. */
  async service(address?: string, spec: object = {}): Promise<void> {
    const annotations = address === undefined
      ? {}
      : { "x-tunnel-server-external-addr": address };
    await this.context.cluster.apply([{
      kind: "Service",
      metadata: { ...SERVICE, annotations },
      spec: { ports: [{ name: "tcp", port: 10262 }], ...spec },
    }]);
  }

  async #roles(): Promise<void> {
    await this.context.cluster.kubectl(["apply", "-f", `${FOLDER}/csr.yaml`]);
  }
}

function addressOf({ agentHost, agentPort }: RunningServer): string {
  return `${agentHost}:${agentPort}`;
}

async function logOf({ child }: { child: Child }): Promise<string> {
  return await Deno.readTextFile(child.logFile).catch(() => "");
}

export const KUBE_CSR_CASES: KubeCases = {
  "a node asks for a certificate, our server approves, the cluster signs, and the agent is in":
    async (context) => {
      await using stage = new CsrCase(context);
      const server = await stage.server("ours", await stage.approver());
      const kubeconfig = await stage.node("edge1");
      const flags = [`--tunnelserver-addr=${addressOf(server)}`];
      const agent = stage.agent("edge1", kubeconfig, flags);
      await getsIn(server, agent);
      const path = `${agent.directory}/yurttunnel-agent-current.pem`;
      const [leaf] = readCertificates(await Deno.readTextFile(path));
      assertEquals(
        leaf!.x509.subject,
        "O=openyurt:yurttunnel\nCN=tunnel-agent-client",
      );
      assertEquals(
        leaf!.x509.subjectAltName,
        "DNS:edge1, IP Address:127.0.0.1",
      );
      const log = await logOf(server);
      assertStringIncludes(log, 'of "system:node:edge1" for node edge1');
      assert(!log.includes("may be another agent"), log);
      // What was kept serves the next start: nothing is asked for.
      await agent.child.stop("SIGKILL");
      const again = stage.agent("edge1", kubeconfig, [
        ...flags,
        `--cert-dir=${agent.directory}`,
      ]);
      await getsIn(server, again);
      assert(!(await logOf(again)).includes("was asked for"));
    },

  "nobody gets a certificate for another node, or the server's own, by writing that into a request":
    async (context) => {
      await using stage = new CsrCase(context);
      const server = await stage.server("ours", await stage.approver());
      await stage.node("edge1");
      const edge2 = await stage.node("edge2");
      const account = await stage.pod("edge2");
      const decided = async (name: string) => {
        await eventually(
          `${name} is decided`,
          async () => await stage.decision(name) !== "",
        );
        return await stage.decision(name);
      };
      const edge1 = { dnsNames: ["edge1"] };
      for (const kubeconfig of [edge2, account]) {
        assertEquals(
          await decided(await stage.ask(kubeconfig, edge1)),
          'Denied: it comes from node "edge2" and asks for names ["edge1"]',
        );
      }
      const strange = { dnsNames: ["edge2"], ipAddresses: ["10.9.9.9"] };
      const waiting = await stage.ask(edge2, strange);
      await eventually("that the address is no node's is said", async () => {
        const why = 'has to wait: 10.9.9.9 is no address of node "edge2"';
        return (await logOf(server)).includes(why);
      });
      assertEquals(await stage.decision(waiting), "");
      const own = await stage.ask(account, {
        commonName: "tunnel-proxy-client",
      });
      await eventually(
        "it is left alone, and that is said",
        async () => (await logOf(server)).includes(`Request ${own}`),
      );
      assertEquals(await stage.decision(own), "");
    },

  "a Pod's bound token gets a certificate for its node": async (context) => {
    await using stage = new CsrCase(context);
    const server = await stage.server("ours", await stage.approver());
    await stage.node("edge3");
    const flags = [`--tunnelserver-addr=${addressOf(server)}`];
    const agent = stage.agent("edge3", await stage.pod("edge3"), flags);
    await getsIn(server, agent);
  },

  "an agent waits until somebody approves, says so, and Konnectivity's server lets it in":
    async (context) => {
      await using stage = new CsrCase(context);
      const server = await stage.server("konnectivity");
      const flags = [`--tunnelserver-addr=${addressOf(server)}`];
      const agent = stage.agent("edge4", await stage.node("edge4"), flags);
      const waiting = /CertificateSigningRequest (tunnel-\S+) waits/;
      let name = "";
      await eventually("the agent says what it waits for", async () => {
        const answer = await fetch(`${agent.healthUrl}/readyz`)
          .catch(() => undefined);
        name = waiting.exec(await answer?.text() ?? "")?.[1] ?? "";
        return name !== "";
      });
      await context.cluster.kubectl(["certificate", "approve", name]);
      await getsIn(server, agent);
    },

  "a denied request is reported with its reason": async (context) => {
    await using stage = new CsrCase(context);
    const flags = ["--tunnelserver-addr=127.0.0.1:1"];
    const agent = stage.agent("edge5", await stage.node("edge5"), flags);
    const [, name] = await agent.child.untilPrinted(/request=(tunnel-\S+)/);
    await context.cluster.kubectl(["certificate", "deny", name!]);
    await agent.child.untilPrinted(/was denied \(KubectlDeny/);
  },

  "servers are found by their Service, and found again when it changes": async (
    context,
  ) => {
    await using stage = new CsrCase(context);
    const approver = await stage.approver();
    const first = await stage.server("ours", approver);
    const second = await stage.server("ours");
    await stage.service(addressOf(first));
    const agent = stage.agent("edge6", await stage.node("edge6"), [
      "--tunnelserver-name=x-tunnel-server-svc",
    ]);
    await getsIn(first, agent);
    await stage.service(`127.0.0.1:1,${addressOf(second)}`);
    const { agentPort } = second;
    await agent.child.untilPrinted(new RegExp(`addresses=.*${agentPort}`));
    await first.child.stop("SIGKILL");
    await getsIn(second, agent);
  },

  "servers are found behind a load balancer and on nodes' ports": async (
    context,
  ) => {
    await using stage = new CsrCase(context);
    const { cluster } = context;
    const approver = await stage.approver();
    const server = await stage.server("ours", approver);
    const ports = [{ name: "tcp", port: server.agentPort }];
    await stage.service(undefined, { type: "LoadBalancer", ports });
    const agent = stage.agent("edge7", await stage.node("edge7"), []);
    await agent.child.untilPrinted(/its load balancer has no address yet/);
    const status = { loadBalancer: { ingress: [{ ip: "127.0.0.1" }] } };
    await cluster.patchStatus(
      `service/${SERVICE.name}`,
      status,
      `--namespace=${SERVICE.namespace}`,
    );
    await getsIn(server, agent);
    // A node's identity may not list nodes any more, and that is said.
    const nodePorts = [{ name: "tcp", port: 10262, nodePort: 30262 }];
    await stage.service(undefined, { type: "NodePort", ports: nodePorts });
    await agent.child.untilPrinted(
      /nodes cannot be listed.*servers are looked for where they were/,
    );
    await cluster.kubectl(["label", "node/edge7", CLOUD_NODES]);
    const other = stage.agent("edge7", cluster.adminKubeconfig, [
      `--cert-dir=${agent.directory}`,
    ]);
    await other.child.untilPrinted(/addresses="127.0.0.1 30262"/);
  },
};
