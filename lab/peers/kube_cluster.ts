/**
 * A real Kubernetes API server on loopback: etcd, kube-apiserver and, when
 * asked for, kube-controller-manager, with certificates of a throw-away
 * authority. There are no nodes; whoever needs one writes its Node object.
 *
 * A cluster takes some 5 s and 400 MB, and 3 s and 100 MB more with the
 * controller-manager, without which a CertificateSigningRequest that was
 * approved gets no certificate and a namespace no ServiceAccount `default`.
 *
 * @module
 */

import {
  exportPrivateKey,
  generateKeyPair,
  publicKeyInfo,
} from "../../platform/pki/key_pair.ts";
import {
  type CertificateSpec,
  ThrowawayCa,
} from "../../tests/support/certificates/throwaway_ca.ts";
import { Child } from "../../tests/support/program/child.ts";
import { findPeer, type PeerName } from "../../tests/support/program/peers.ts";
import { freePort } from "../../tests/support/program/ports.ts";
import { runToEnd } from "../../tests/support/program/run.ts";

/** As clusters have it; the first address is the API server's own. */
export const SERVICE_RANGE = "10.96.0.0/16";
const SERVICE_ADDRESS = "10.96.0.1";

/** Those that tests of ours have a use for. */
const CONTROLLERS = [
  "certificatesigningrequest-approving-controller",
  "certificatesigningrequest-signing-controller",
  "serviceaccount-controller",
  "serviceaccount-token-controller",
  "root-ca-certificate-publisher-controller",
  "namespace-controller",
  "endpoints-controller",
  "endpointslice-controller",
];

/** Those that make Pods of what is applied, and remove them with it. */
const POD_CONTROLLERS = [
  "deployment-controller",
  "replicaset-controller",
  "daemonset-controller",
  "node-lifecycle-controller",
  "garbage-collector-controller",
];

/** What a cluster is to have. */
export interface ClusterConfig {
  /** Of kube-apiserver, such as `--egress-selector-config-file=…`. */
  readonly flags?: readonly string[];
  /** With `pods` it makes Pods, too, for which a scheduler finds nodes. */
  readonly controllerManager?: true | "pods";
  /** Words before kube-apiserver's command, such as `unshare …`. */
  readonly prefix?: readonly string[];
}

/** See the module description. */
export class KubeCluster implements AsyncDisposable {
  readonly #pki: Pki;
  readonly #children: Child[] = [];
  readonly #httpClient: Deno.HttpClient;
  readonly #port = freePort();
  readonly #etcdPort = freePort();
  #kubectl = "";
  /** Of kube-apiserver, beside its own, from its next start on. */
  flags: readonly string[] = [];
  #prefix: readonly string[] = [];
  /** What signs tokens; those that were given stay good after a restart. */
  #tokens: { privateKey: string; publicKey: string } | undefined;

  private constructor(readonly folder: string, pki: Pki) {
    this.#pki = pki;
    this.#httpClient = Deno.createHttpClient({
      caCerts: [pki.ca.cert],
    });
  }

  /**
   * Starts everything and waits until it is ready.
   *
   * @param folder For data, certificates and logs; must exist.
   */
  static async start(
    folder: string,
    config: ClusterConfig = {},
  ): Promise<KubeCluster> {
    const cluster = new KubeCluster(folder, await Pki.make(folder));
    try {
      await cluster.#startAll(config);
    } catch (error) {
      await cluster[Symbol.asyncDispose]();
      throw error;
    }
    return cluster;
  }

  /** `https://127.0.0.1:port`. */
  get server(): string {
    return `https://127.0.0.1:${this.#port}`;
  }

  /** Of everything's CA: the cluster's, its clients' and its kubelets'. */
  get caFile(): string {
    return this.#pki.path("ca.crt");
  }

  /** Of the user in group `system:masters`. */
  get adminKubeconfig(): string {
    return `${this.folder}/admin.kubeconfig`;
  }

  get apiServer(): Child {
    const found = this.#children.find(({ name }) => name === "kube-apiserver");
    if (found === undefined) throw new TypeError("Nothing was started");
    return found;
  }

  /** Issues a certificate of the cluster's CA. */
  issue(name: string, spec: CertificateSpec): Promise<PkiPair> {
    return this.#pki.issue(name, spec);
  }

  /**
   * A kubeconfig file with these fields of a user.
   *
   * @param server Where the API server is reached, when something stands
   *   before it.
   */
  async kubeconfig(
    name: string,
    user: object,
    server = this.server,
  ): Promise<string> {
    const path = `${this.folder}/${name}.kubeconfig`;
    const text = JSON.stringify({
      apiVersion: "v1",
      kind: "Config",
      "current-context": "main",
      clusters: [{
        name: "main",
        cluster: {
          server,
          "certificate-authority": this.caFile,
        },
      }],
      users: [{ name: "main", user }],
      contexts: [{ name: "main", context: { cluster: "main", user: "main" } }],
    });
    await Deno.writeTextFile(path, text, { mode: 0o600 });
    return path;
  }

  /**
   * Runs kubectl as administrator, to its end.
   *
   * @param input Its standard input, such as a manifest for `apply -f -`.
   * @returns What it printed.
   */
  async kubectl(args: readonly string[], input = ""): Promise<string> {
    const command = [
      this.#kubectl,
      `--kubeconfig=${this.adminKubeconfig}`,
      ...args,
    ];
    const { code, stdout, stderr } = await runToEnd(command, { input });
    if (code === 0) return stdout.trim();
    throw new Error(`kubectl ${args.join(" ")}: ${stderr.trim()}`);
  }

  /** Writes objects, of `v1` unless they say otherwise. */
  async apply(objects: readonly object[], namespace?: string): Promise<void> {
    const items = objects.map((each) => ({ apiVersion: "v1", ...each }));
    const place = namespace === undefined ? [] : [`--namespace=${namespace}`];
    await this.kubectl(
      [...place, "apply", "-f", "-"],
      JSON.stringify({ apiVersion: "v1", kind: "List", items }),
    );
  }

  /** @param object Such as `node/edge1`. */
  async patchStatus(
    object: string,
    status: unknown,
    ...flags: readonly string[]
  ): Promise<void> {
    const words = ["patch", object, "--subresource=status", "--type=merge"];
    const patch = `--patch=${JSON.stringify({ status })}`;
    await this.kubectl([...words, patch, ...flags]);
  }

  /** The kubeconfig of a user with a certificate of the cluster's CA. */
  async user(
    name: string,
    organizations: readonly string[] = [],
    server?: string,
  ): Promise<string> {
    const file = name.replaceAll(":", "-");
    const pair = await this.issue(file, {
      ...{ commonName: name, organizations, usage: "client" },
    });
    return await this.kubeconfig(file, userOf(pair), server);
  }

  /** Gives somebody a role of the cluster. */
  async bind(
    role: string,
    kind: "User" | "ServiceAccount",
    name: string,
    binding = role,
  ): Promise<void> {
    const group = "rbac.authorization.k8s.io";
    const subject = kind === "User"
      ? { kind, name, apiGroup: group }
      : { kind, name, namespace: "kube-system" };
    await this.apply([{
      apiVersion: `${group}/v1`,
      kind: "ClusterRoleBinding",
      metadata: { name: binding },
      roleRef: { apiGroup: group, kind: "ClusterRole", name: role },
      subjects: [subject],
    }]);
  }

  /**
   * Stops the API server and starts it again. It has forgotten the past.
   *
   * @param meanwhile Done while there is none; it is killed then, since the
   *   polite way keeps watches for seconds.
   */
  async restartApiServer(meanwhile?: () => Promise<void>): Promise<void> {
    const { apiServer } = this;
    await apiServer.stop(meanwhile === undefined ? "SIGTERM" : "SIGKILL");
    this.#children.splice(this.#children.indexOf(apiServer), 1);
    await meanwhile?.();
    await this.#startApiServer();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    // Politely, it keeps watches until it is killed anyway.
    for (const child of this.#children.toReversed()) {
      await child.stop("SIGKILL");
    }
    this.#httpClient.close();
  }

  async #startAll(
    { flags = [], controllerManager, prefix = [] }: ClusterConfig,
  ) {
    this.flags = flags;
    this.#prefix = prefix;
    this.#kubectl = await findPeer("kubectl");
    await this.user("admin", ["system:masters"]);
    await this.#startEtcd();
    await this.#startApiServer();
    if (controllerManager === undefined) return;
    const more = controllerManager === "pods" ? POD_CONTROLLERS : [];
    await this.#startControllerManager([...CONTROLLERS, ...more]);
    if (controllerManager === "pods") await this.#startPart("kube-scheduler");
  }

  async #startEtcd(): Promise<void> {
    const client = `http://127.0.0.1:${this.#etcdPort}`;
    const peer = `http://127.0.0.1:${freePort()}`;
    await this.#launch("etcd", [
      `--data-dir=${this.folder}/etcd`,
      "--log-level=warn",
      "--unsafe-no-fsync",
      `--listen-client-urls=${client}`,
      `--advertise-client-urls=${client}`,
      `--listen-peer-urls=${peer}`,
      `--initial-advertise-peer-urls=${peer}`,
      `--initial-cluster=default=${peer}`,
    ], `${client}/health`);
  }

  async #startApiServer(): Promise<void> {
    const server = await this.issue("apiserver", {
      commonName: "kube-apiserver",
      usage: "server",
      names: ["127.0.0.1", SERVICE_ADDRESS, "localhost", "kubernetes"],
    });
    const kubelets = await this.issue("kubelet-client", {
      commonName: "kube-apiserver-kubelet-client",
      organizations: ["system:masters"],
      usage: "client",
    });
    const frontProxy = await this.issue("front-proxy", {
      commonName: "front-proxy-client",
      usage: "client",
    });
    const tokens = this.#tokens ??= await this.#pki.keyPair("service-account");
    await this.#launch(
      "kube-apiserver",
      [
        "--bind-address=127.0.0.1",
        "--advertise-address=127.0.0.1",
        "--endpoint-reconciler-type=none",
        `--secure-port=${this.#port}`,
        `--etcd-servers=http://127.0.0.1:${this.#etcdPort}`,
        `--service-cluster-ip-range=${SERVICE_RANGE}`,
        "--authorization-mode=Node,RBAC",
        "--enable-admission-plugins=NodeRestriction",
        `--client-ca-file=${this.caFile}`,
        `--tls-cert-file=${server.cert}`,
        `--tls-private-key-file=${server.key}`,
        `--kubelet-certificate-authority=${this.caFile}`,
        "--kubelet-preferred-address-types=InternalIP,Hostname",
        `--kubelet-client-certificate=${kubelets.cert}`,
        `--kubelet-client-key=${kubelets.key}`,
        `--requestheader-client-ca-file=${this.caFile}`,
        "--requestheader-allowed-names=front-proxy-client",
        "--requestheader-username-headers=X-Remote-User",
        "--requestheader-group-headers=X-Remote-Group",
        "--requestheader-extra-headers-prefix=X-Remote-Extra-",
        `--proxy-client-cert-file=${frontProxy.cert}`,
        `--proxy-client-key-file=${frontProxy.key}`,
        `--service-account-issuer=${this.server}`,
        `--service-account-key-file=${tokens.publicKey}`,
        `--service-account-signing-key-file=${tokens.privateKey}`,
        ...this.flags,
      ],
      `${this.server}/readyz`,
      this.#prefix,
    );
  }

  async #startControllerManager(controllers: readonly string[]): Promise<void> {
    const signing = this.#pki.path("service-account.key");
    await this.#startPart("kube-controller-manager", [
      "--use-service-account-credentials=true",
      `--controllers=${controllers.join(",")}`,
      `--cluster-signing-cert-file=${this.caFile}`,
      `--cluster-signing-key-file=${this.#pki.path("ca.key")}`,
      `--root-ca-file=${this.caFile}`,
      `--service-account-private-key-file=${signing}`,
    ]);
  }

  /** One that works alone, beside kube-apiserver. */
  async #startPart(
    name: "kube-controller-manager" | "kube-scheduler",
    flags: readonly string[] = [],
  ): Promise<void> {
    const port = freePort();
    const serving = await this.issue(`${name}-serving`, {
      ...{ commonName: name, usage: "server", names: ["127.0.0.1"] },
    });
    await this.#launch(name, [
      `--kubeconfig=${await this.user(`system:${name}`)}`,
      "--bind-address=127.0.0.1",
      `--secure-port=${port}`,
      `--tls-cert-file=${serving.cert}`,
      `--tls-private-key-file=${serving.key}`,
      "--leader-elect=false",
      ...flags,
    ], `https://127.0.0.1:${port}/healthz`);
  }

  async #launch(
    name: PeerName,
    flags: readonly string[],
    readyUrl: string,
    prefix: readonly string[] = [],
  ): Promise<void> {
    const child = new Child({
      name,
      command: [...prefix, await findPeer(name), ...flags],
      logFile: `${this.folder}/${name}.log`,
    });
    this.#children.push(child);
    await child.untilReady(readyUrl, this.#httpClient);
  }
}

/** Paths of a certificate and its key. */
export interface PkiPair {
  readonly cert: string;
  readonly key: string;
}

/** The cluster's authority and its files. */
class Pki {
  private constructor(readonly folder: string, readonly ca: ThrowawayCa) {}

  static async make(folder: string): Promise<Pki> {
    const pki = new Pki(folder, await ThrowawayCa.create("kubernetes"));
    await Deno.mkdir(`${folder}/pki`, { recursive: true });
    await pki.#write("ca.crt", pki.ca.cert);
    await pki.#write("ca.key", await pki.ca.exportKey());
    return pki;
  }

  path(name: string): string {
    return `${this.folder}/pki/${name}`;
  }

  async issue(name: string, spec: CertificateSpec): Promise<PkiPair> {
    const { cert, key } = await this.ca.issue(spec);
    return {
      cert: await this.#write(`${name}.crt`, cert),
      key: await this.#write(`${name}.key`, key),
    };
  }

  /** Without a certificate: signatures of tokens are made and checked with it. */
  async keyPair(
    name: string,
  ): Promise<{ privateKey: string; publicKey: string }> {
    const { privateKey, publicKey } = await generateKeyPair();
    const info = (await publicKeyInfo(publicKey)).toBase64();
    const pem =
      `-----BEGIN PUBLIC KEY-----\n${info}\n-----END PUBLIC KEY-----\n`;
    return {
      privateKey: await this.#write(
        `${name}.key`,
        await exportPrivateKey(privateKey),
      ),
      publicKey: await this.#write(`${name}.pub`, pem),
    };
  }

  async #write(name: string, text: string): Promise<string> {
    await Deno.writeTextFile(this.path(name), text, { mode: 0o600 });
    return this.path(name);
  }
}

/** The fields of a kubeconfig's user. */
export function userOf(pair: PkiPair): object {
  return { "client-certificate": pair.cert, "client-key": pair.key };
}
