/**
 * An identity from the cluster as the rest of the agent sees it: files for TLS,
 * the certainty that they are good, and where servers are.
 *
 * Joins the parts of this folder; each decides one thing, this one nothing.
 *
 * @module
 */

import { unawaited } from "../../../platform/errors/internal_errors.ts";
import {
  type CertificateSpec,
  requestCertificate,
} from "../../../neighbours/kubernetes/csr.ts";
import type { KubernetesClient } from "../../../neighbours/kubernetes/client.ts";
import {
  connectKubernetes,
  type KubernetesOptions,
} from "../../../neighbours/kubernetes/connect.ts";
import type { Log } from "../../../platform/log/log.ts";
import type { ServerAddress } from "../../../net/dial/server_addresses.ts";
import { systemTimers } from "../../../platform/time/system_timers.ts";
import {
  type CredentialFiles,
  type Credentials,
  CredentialsError,
} from "../../../net/tls/trust/credentials.ts";
import type { LinkIdentity } from "../enrolment_error.ts";
import { CertificateFiles } from "./certificate_files.ts";
import { CsrCertificate } from "./csr_certificate.ts";
import {
  type DiscoveryOptions,
  ServiceDiscovery,
} from "./service_discovery.ts";
import { NeighbourConfigError } from "../../../neighbours/tls_files.ts";

export class KubernetesIdentity implements LinkIdentity {
  readonly serverName?: string;
  readonly #store: CertificateFiles;
  readonly #client: KubernetesClient;
  readonly #bootstrap: KubernetesClient | undefined;
  readonly #certificate: CsrCertificate;
  readonly #discovery: ServiceDiscovery | undefined;
  #credentials: Credentials | undefined;
  /** The content of the file of authorities. */
  #authorities = "";

  private constructor(
    private readonly options: KubernetesIdentityOptions,
    private readonly log: Log,
  ) {
    const { api, bootstrap, serverName, discovery } = options;
    const { spec, directory, component } = options.certificate;
    if (serverName !== undefined) this.serverName = serverName;
    this.#store = new CertificateFiles(directory, component, Date.now);
    this.#client = connectKubernetes(api, systemTimers, "late");
    this.#bootstrap = bootstrap &&
      connectKubernetes(bootstrap, systemTimers, "late");
    this.#certificate = new CsrCertificate({
      files: this.#store,
      spec,
      request: (keys, signal, onPending) =>
        requestCertificate(keys, spec, {
          client: this.#asked,
          timers: systemTimers,
          random: Math.random,
          ...{ signal, onPending },
        }),
      onKept: () => this.#reload(),
      timers: systemTimers,
      now: Date.now,
      random: Math.random,
      log,
    });
    this.#discovery = discovery && new ServiceDiscovery({
      ...discovery,
      client: this.#client,
      timers: systemTimers,
      random: Math.random,
      log,
    });
  }

  /**
   * Begins to see to a certificate.
   *
   * @throws {PrivateFileError} When its directory cannot be made.
   */
  static async open(
    options: KubernetesIdentityOptions,
    log: Log,
  ): Promise<KubernetesIdentity> {
    const identity = new KubernetesIdentity(options, log);
    await identity.#store.open();
    identity.#certificate.start();
    return identity;
  }

  /** Why no link can be made; `undefined` when one can. */
  get problem(): string | undefined {
    return this.#certificate.problem;
  }

  /** For TLS, after `first` has resolved. */
  get files(): CredentialFiles {
    const { current, authorities } = this.#store;
    const ca = this.options.caFile ?? authorities;
    return { cert: current, key: current, ca };
  }

  /**
   * Resolves when there is a certificate; waits for as long as that takes.
   *
   * @throws {NeighbourConfigError} When servers could not be distinguished from others.
   */
  async first(): Promise<void> {
    await this.#certificate.first();
    await this.#keepAuthorities();
  }

  start(credentials: Credentials): void {
    this.#credentials = credentials;
    this.#discovery?.start();
  }

  stop(): void {
    unawaited("task", this.#certificate.stop());
    if (this.#discovery) unawaited("task", this.#discovery.stop());
    this.#client[Symbol.dispose]();
    this.#bootstrap?.[Symbol.dispose]();
  }

  /** See `LinkIdentity`. The cluster's authority may have changed, too. */
  async ready(): Promise<void> {
    const { problem } = this.#certificate;
    if (problem !== undefined) {
      throw new Error(`Cannot prove who this node is: ${problem}`);
    }
    await this.#keepAuthorities();
  }

  /** See `LinkIdentity`. */
  async findServers(): Promise<readonly ServerAddress[] | undefined> {
    return await this.#discovery?.addresses();
  }

  /**
   * The API server to ask: a node without a certificate may have no other way
   * either.
   */
  get #asked(): KubernetesClient {
    return this.#certificate.hasAny
      ? this.#client
      : this.#bootstrap ?? this.#client;
  }

  async #keepAuthorities(): Promise<void> {
    if (this.options.caFile !== undefined) return;
    const pem = await this.#authority();
    if (pem === this.#authorities) return;
    await this.#store.keepAuthorities(pem);
    this.#authorities = pem;
    this.#reload();
  }

  /** PEM. @throws {NeighbourConfigError} */
  async #authority(): Promise<string> {
    let pem: string | undefined;
    try {
      pem = this.#client.authority;
    } catch (error) {
      if (!(error instanceof NeighbourConfigError)) throw error;
      // Not written yet, or removed: the last known content is used.
      const known = await this.#store.readAuthorities();
      if (known !== undefined) return known;
      if (this.#bootstrap === undefined) throw error;
      pem = this.#bootstrap.authority;
    }
    if (pem !== undefined) return pem;
    throw new NeighbourConfigError(
      "Cannot verify the server: the kubeconfig names no " +
        "CA; give --ca-cert",
    );
  }

  #reload(): void {
    try {
      this.#credentials?.reload();
    } catch (error) {
      if (!(error instanceof CredentialsError)) throw error;
      this.log.error(`${error.message}; the ones in use stay`, {
        code: "TUN202",
      });
    }
  }
}

// What an agent that has its certificate from the cluster wants to know, already
// validated.

export interface KubernetesIdentityOptions {
  readonly api: KubernetesOptions;
  /** Asked in its place until there is a first certificate. */
  readonly bootstrap?: KubernetesOptions;
  readonly certificate: {
    readonly spec: CertificateSpec;
    readonly directory: string;
    /** Begins the names of its files. */
    readonly component: string;
  };
  /** CA of the servers' certificates; absent: the API server's. */
  readonly caFile?: string;
  /** What the servers' certificates must be for; absent: the address dialed. */
  readonly serverName?: string;
  /** Absent: servers are where `AgentOptions` says. */
  readonly discovery?: DiscoveryOptions;
}
