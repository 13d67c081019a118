/**
 * The identity of a node as the rest of the agent sees it: its name, files for
 * TLS, and the certainty that they are good.
 *
 * Joins the parts of this folder; each decides one thing, this one nothing.
 *
 * @module
 */

import { messageOf } from "../../platform/errors/error_code.ts";
import { unawaited } from "../../platform/errors/internal_errors.ts";
import type { Log } from "../../platform/log/log.ts";
import { readCertificates } from "../../platform/pki/certificate.ts";
import { PrivateFileError } from "../../platform/files/private_files.ts";
import { PkiError } from "../../platform/pki/key_pair.ts";
import type { ProxyEnvironment } from "../../net/dial/proxy_environment.ts";
import {
  type ResolvedServer,
  type ServerAddress,
  systemServerAddresses,
} from "../../net/dial/server_addresses.ts";
import { atMost } from "../../platform/time/deadline.ts";
import { systemTimers } from "../../platform/time/system_timers.ts";
import {
  type CredentialFiles,
  type Credentials,
  CredentialsError,
  type TlsMaterial,
} from "../../net/tls/trust/credentials.ts";
import {
  authorityIdOf,
  type EnrolmentOutcome,
  IDENTITY_MESSAGE_BYTES_MAX,
} from "../../proto/identity/enrolment.ts";
import type { Enrolment } from "../../proto/identity/identity_messages.ts";
import { TUNNEL_SERVER_NAME } from "../../proto/identity/node_name.ts";
import {
  type Identifiers,
  parseIdentifiers,
} from "../../proto/peer/identifiers.ts";
import type { PeerServer } from "../../proto/link/link_messages.ts";
import { hostOf, portOf } from "../../proto/peer/host_port.ts";
import {
  EnrolmentError,
  type LinkIdentity,
  UnheardError,
} from "./enrolment_error.ts";
import { TlsHandshakeError } from "../../net/tls/trust/tls_errors.ts";
import type { AgentIdentityOptions } from "../options.ts";
import { type AgentIdentityFiles, AgentState } from "./agent_state.ts";
import { enrol, IdentityCalls } from "./identity_calls.ts";
import { type RenewalMeans, type Renewed, Renewer } from "./renewer.ts";

/** What getting an identity needs from outside. */
interface AgentIdentityEnvironment {
  readonly log: Log;
  /** None: those where the node has joined. */
  readonly servers: readonly ServerAddress[];
  readonly proxy: ProxyEnvironment;
  /** False: who cannot be reached is told at once, as a person would want. */
  readonly isPatient: boolean;
  /** Asked again after `retryMs`; beside the line in the log. */
  readonly onWaiting?: (reason: string, retryMs: number) => void;
  /** Uniform in [0, 1); the platform's when absent. */
  readonly random?: (() => number) | undefined;
}

/** How long an end waits for what is being written: a disk may hang. */
const KEEP_MS = 2_000;

export class AgentIdentity implements LinkIdentity {
  readonly serverName = TUNNEL_SERVER_NAME;
  readonly #renewer: Renewer;
  #credentials: Credentials | undefined;
  /** The server's last report while linked. */
  #lastBundle: string | undefined;
  /** Trusted already, while damaged files keep it from `#credentials`. */
  #authoritiesAhead: string | undefined;

  /** One after the other: the last word stays. */
  #keeping: Promise<void> = Promise.resolve();
  /** Servers that wait to be kept. */
  #unkept: readonly PeerServer[] | undefined;

  private constructor(
    private readonly asking: Asking,
    { log, random = Math.random }: AgentIdentityEnvironment,
    private readonly known: Required<AgentIdentityFiles>,
    readonly learnedServers: readonly PeerServer[],
  ) {
    this.#renewer = new Renewer({
      timers: systemTimers,
      now: Date.now,
      random,
      certificate: known.certificate,
      authorities: known.authorities,
      renew: (means, at) => this.#renew(means, at),
      ...{ log, node: known.node.name },
    });
  }

  /**
   * Opens the identity of a joined node; joins, if it has not joined and has a
   * token.
   *
   * @throws {PrivateFileError} When the directory cannot be used.
   * @throws {EnrolmentError} When the node gets no identity.
   */
  static async open(
    options: AgentIdentityOptions,
    environment: AgentIdentityEnvironment,
  ): Promise<AgentIdentity> {
    const state = await AgentState.open(options.stateDirectory);
    const found = await state.read();
    const asking = askingOf(state, environment, found);
    const known = found ?? await join(asking, options);
    const { node } = known;
    const learned = await state.readServers();
    asking.learned(learned);
    const wanted = options.node;
    if (wanted !== undefined && wanted !== node.name) {
      throw new EnrolmentError(
        `Cannot be ${wanted}: ${state.root} holds the identity of ` +
          `${node.name}; leave --node away, or name another --state-dir`,
      );
    }
    const { certificate = (await recover(asking, known)).certificate } = known;
    const whole = { ...known, certificate };
    return new AgentIdentity(asking, environment, whole, learned);
  }

  /** The node's name. */
  get node(): string {
    return this.known.node.name;
  }

  /** The addresses of its servers. */
  get servers(): readonly ServerAddress[] {
    return this.asking.servers;
  }

  /** Servers have said where servers are: calls may go there, now and later. */
  keepServers(servers: readonly PeerServer[]): void {
    this.asking.learned(servers);
    // However often a server changes its word, one write waits.
    const isQueued = this.#unkept !== undefined;
    this.#unkept = servers;
    if (isQueued) return;
    this.#keeping = this.#keeping.then(() => this.#keepLatest())
      .catch((error) => {
        if (!(error instanceof PrivateFileError)) throw error;
        this.asking.log.event(
          `${error.message}; after a restart other servers are found by the ` +
            "address that was given",
        );
      });
    unawaited("identity", this.#keeping);
  }

  async #keepLatest(): Promise<void> {
    const servers = this.#unkept ?? [];
    this.#unkept = undefined;
    await this.asking.state.keepServers(servers);
  }

  /** Its default identifiers: its name, and those that it was granted. */
  get identifiers(): Identifiers {
    const granted = parseIdentifiers(this.known.node.identifiers, "server");
    return { ...granted, host: [...new Set([this.node, ...granted.host])] };
  }

  /** For TLS; see `Credentials`. */
  get files(): Required<CredentialFiles> {
    return this.asking.state.files;
  }

  /**
   * Begins to look after the certificate that `credentials` has read. Others may
   * do the same: an agent, a proxy and a forward of one node share its identity.
   */
  start(credentials: Credentials): void {
    this.#credentials = credentials;
    credentials.onFailure(() => unawaited("identity", this.#mend()));
    credentials.onChange((material) => this.#adopt(material));
    this.#adopt(credentials.current);
    this.#renewer.start();
  }

  /**
   * Takes what another process with this identity may have put in its place.
   *
   * @returns Whether something else is shown or trusted from now on.
   */
  lookAgain(): boolean {
    try {
      return this.#credentials?.reload() ?? false;
    } catch (error) {
      // Usually half of a replacement: the earlier files are used.
      if (!(error instanceof CredentialsError)) throw error;
      return false;
    }
  }

  /** Ids of the authorities that are trusted now. */
  get trusted(): readonly string[] {
    return readCertificates(this.#trustedPem).map(authorityIdOf);
  }

  get #trustedPem(): string {
    return this.#authoritiesAhead ?? this.#credentials?.current.ca ??
      this.known.authorities.map(({ pem }) => pem).join("");
  }

  #adopt({ cert, ca }: TlsMaterial): void {
    try {
      const [certificate] = readCertificates(cert);
      const authorities = readCertificates(ca);
      this.#renewer.adopt({ certificate: certificate!, authorities });
    } catch (error) {
      // It was good enough for TLS, and says nothing that can be planned by.
      if (!(error instanceof PkiError)) throw error;
    }
  }

  stop(): Promise<void> {
    this.#renewer.stop();
    return atMost(systemTimers, KEEP_MS, this.#keeping);
  }

  /** See `Renewer.ready`. */
  ready(): Promise<void> {
    return this.#renewer.ready();
  }

  /** See `Renewer.renewDue`. */
  renewDue(): Promise<void> {
    return this.#renewer.renewDue();
  }

  /** See `UpstreamIdentity.failed`. */
  failed(error: unknown, server: ResolvedServer): boolean {
    const isHandshake = error instanceof TlsHandshakeError;
    if (isHandshake && this.lookAgain()) return true;
    // With TLS 1.3 a server that refuses a certificate may simply close the
    // connection.
    const isRefused = error instanceof UnheardError ||
      (isHandshake && error.failure === "refused-by-peer");
    if (isRefused) this.doubt(server);
    return false;
  }

  /** See `Renewer.doubt`. */
  doubt(server?: ResolvedServer): void {
    this.#renewer.doubt(server);
  }

  /**
   * A trusted server sends the authorities to trust from now on, PEM.
   *
   * @returns Ids of the authorities that are trusted now.
   */
  async trust(bundle: Uint8Array): Promise<readonly string[]> {
    try {
      const pem = new TextDecoder().decode(bundle);
      if (bundle.length > IDENTITY_MESSAGE_BYTES_MAX) {
        throw new PkiError(`it has ${bundle.length} bytes`);
      }
      const authorities = readCertificates(pem);
      this.#lastBundle = pem;
      if (this.#credentials?.current.ca !== pem) {
        await this.asking.state.keepAuthorities(pem);
        this.#useAuthorities(pem);
        this.asking.log.info(
          "the server's certificate authorities have changed",
          {
            trusted: authorities.length,
          },
        );
      }
      this.#renewer.authoritiesChanged(authorities);
    } catch (error) {
      this.asking.log.warn(
        "Cannot take over the server's new certificate authorities: " +
          `${messageOf(error)}; the ones in use stay`,
        { code: "TUN905" },
      );
    }
    return this.trusted;
  }

  /** A damaged file of another kind must not keep them from renewing. */
  #useAuthorities(pem: string): void {
    this.#authoritiesAhead = undefined;
    try {
      this.#credentials?.reload();
    } catch (error) {
      if (!(error instanceof CredentialsError)) throw error;
      this.#authoritiesAhead = pem;
    }
  }

  /**
   * Files could not be read again: the certificate is requested again if
   * possible.
   */
  async #mend(): Promise<void> {
    await this.#restoreKey();
    if (await this.asking.state.holdsCertificate(this.known.keys)) return;
    if (!this.#renewer.replace()) return;
    this.asking.log.warn(
      `${this.files.cert} is damaged or missing: asking for another one with ` +
        "the node's key; until then the old one stays in use",
      { code: "TUN906" },
    );
  }

  /** Only a running agent still has it. */
  async #restoreKey(): Promise<void> {
    try {
      if (!await this.asking.state.restoreKey(this.known.keys)) return;
      this.asking.log.warn(
        `${this.files.key} was damaged or missing: the node's key was written ` +
          "again, as this agent still has it; look who did that",
        { code: "TUN906" },
      );
    } catch (error) {
      if (!(error instanceof PrivateFileError)) throw error;
      this.asking.log.warn(
        `Cannot write the node's key again: ${error.message}; keep this agent ` +
          "running, because no other program has it",
        { code: "TUN905" },
      );
    }
  }

  /** One process at a time: the next one finds what the first was given. */
  async #renew(
    means: RenewalMeans,
    at?: ResolvedServer,
  ): Promise<Renewed> {
    const before = this.#credentials!.current.cert;
    return await this.asking.state.exclusively(async () => {
      this.lookAgain();
      const { cert, ca } = this.#credentials!.current;
      if (cert === before) return await this.#renewAlone(means, at);
      const [certificate] = readCertificates(cert);
      const authorities = readCertificates(ca);
      return { certificate: certificate!, authorities, isOthers: true };
    });
  }

  async #renewAlone(
    means: RenewalMeans,
    at?: ResolvedServer,
  ): Promise<Renewed> {
    const { keys } = this.known;
    const { current: inUse } = this.#credentials!;
    const bundleBefore = this.#lastBundle;
    const current = { ...inUse, ca: this.#authoritiesAhead ?? inUse.ca };
    const answer = means === "certificate"
      ? await this.asking.calls.renew(this.node, keys, current)
      : await this.asking.calls.renewByProof(this.node, keys, current.ca, at);
    if (answer.pending !== undefined) {
      throw new Error(`Cannot renew yet: ${answer.pending.reason}`);
    }
    await this.#restoreKey();
    const kept = await this.asking.state.keep(answer.enrolment, this.servers);
    this.#authoritiesAhead = undefined;
    const bundle = this.#lastBundle;
    if (bundle === undefined || bundle === bundleBefore) {
      this.#credentials!.reload();
      return kept;
    }
    // The answer may be older than the news of a link; if it is newer, the link
    // will bring it as well.
    await this.asking.state.keepAuthorities(bundle);
    this.#credentials!.reload();
    return { ...kept, authorities: readCertificates(bundle) };
  }
}

/** What asking for the first certificate takes. */
interface Asking {
  readonly state: AgentState;
  /** The addresses of calls. */
  readonly servers: readonly ServerAddress[];
  readonly calls: IdentityCalls;
  ask(question: () => Promise<EnrolmentOutcome>): Promise<Enrolment>;
  /** Calls may go there, too. */
  readonly learned: (servers: readonly PeerServer[]) => void;
  readonly log: Log;
}

function askingOf(
  state: AgentState,
  environment: AgentIdentityEnvironment,
  found?: AgentIdentityFiles,
): Asking {
  const { log, proxy, isPatient, random } = environment;
  const servers = environment.servers.length > 0
    ? environment.servers
    : found?.node.servers ?? [];
  const serverAddresses = systemServerAddresses(servers, proxy);
  const learned: Asking["learned"] = (more) =>
    serverAddresses.use([
      ...servers,
      ...more.map(({ address }) => ({
        host: hostOf(address),
        port: portOf(address),
      })),
    ]);
  const calls = new IdentityCalls({ serverAddresses, proxyEnv: proxy });
  const ask: Asking["ask"] = (question) =>
    enrol({
      ask: question,
      timers: systemTimers,
      random: random ?? Math.random,
      isPatient,
      waiting(reason, retryMs) {
        log.event(
          `${reason}; trying again in ${Math.round(retryMs)} ms`,
          {},
          reason,
        );
        environment.onWaiting?.(reason, retryMs);
      },
    });
  return { state, servers, calls, ask, learned, log };
}

/**
 * Joins with a token, with the key that is there or a new one.
 *
 * @throws {EnrolmentError | PrivateFileError}
 */
async function join(
  { state, servers, calls, ask, log }: Asking,
  { token, node }: AgentIdentityOptions,
): Promise<Required<AgentIdentityFiles>> {
  if (token === undefined || node === undefined) {
    throw new EnrolmentError(
      `Cannot find an identity in ${state.root}: this node has not joined; ` +
        "`tunnel token create` on the server, then --join TOKEN here",
    );
  }
  const keys = await state.keys();
  log.info("joining", { node, servers: servers.length });
  const enrolment = await ask(() => calls.join(token, node, keys));
  const kept = await state.keep(enrolment, servers);
  log.info("joined: the token is not needed any more", {
    node: kept.node.name,
    until: new Date(kept.certificate.notAfterMs).toISOString(),
    state: state.root,
  });
  return kept;
}

/** Joins, whether or not the node has joined before. @throws As `join`. */
export async function joinAgain(
  options: AgentIdentityOptions,
  environment: AgentIdentityEnvironment,
): Promise<void> {
  const state = await AgentState.open(options.stateDirectory);
  await join(askingOf(state, environment), options);
}

/** Requests a certificate for the joined key when there is none. */
async function recover(
  { state, servers, calls, ask, log }: Asking,
  { node, keys, authorities }: AgentIdentityFiles,
): Promise<Required<AgentIdentityFiles>> {
  log.warn(
    `there is no certificate in ${state.root}: asking for one with its key`,
    { code: "TUN906" },
  );
  const ca = authorities.map(({ pem }) => pem).join("");
  const enrolment = await ask(() => calls.renewByProof(node.name, keys, ca));
  return await state.keep(enrolment, servers);
}
