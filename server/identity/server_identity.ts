/**
 * A server's identity as the rest of the server sees it: files for TLS,
 * authorizers for links, methods for the agent port, and events of changes.
 *
 * Joins the parts of this folder; each decides one thing, this one nothing.
 *
 * @module
 */

import { tunnelCodeOf } from "../../proto/codes/codes.ts";
import { unawaited } from "../../platform/errors/internal_errors.ts";
import type { Log } from "../../platform/log/log.ts";
import type { MetricRegistry } from "../../platform/metrics/metrics.ts";
import { systemTimers } from "../../platform/time/system_timers.ts";
import type { CredentialFiles } from "../../net/tls/trust/credentials.ts";
import type { MethodHandler } from "../../proto/grpc/call.ts";
import { TUNNEL_SERVER_NAME } from "../../proto/identity/node_name.ts";
import type { PeerIdentity } from "../../proto/peer/peer_identity.ts";
import type { LinkPeer } from "../../proto/link/link.ts";
import type { Timer } from "../../proto/sync/clock.ts";
import type { Authorizer } from "../links/authorizer.ts";
import type { ConnectionPeer } from "../links/agent_port.ts";
import type { ServerIdentityOptions } from "../options.ts";
import { openOrCreateState, type StateSource } from "../state/open_state.ts";
import {
  AUTHORITY_ROLES,
  type DirectoryStore,
} from "../../neighbours/store/directory_store.ts";
import type { Store } from "../../neighbours/store/store.ts";
import { directoryConnection } from "../../neighbours/store/store_connection.ts";
import {
  logState,
  StoreAwayError,
  StoreError,
} from "../../neighbours/store/store_error.ts";
import {
  type Authorities,
  createAuthorities,
  loadAuthorities,
  repairBundle,
} from "./authorities.ts";
import { type DuplicateRecord, DuplicateRecords } from "./duplicate_records.ts";
import { GrantedAddresses } from "./granted_addresses.ts";
import { counted } from "../metrics/metric_families.ts";
import { noteAddress } from "./join_address.ts";
import { JoinService } from "./join_service.ts";
import {
  type Grants,
  nodeAuthorizer,
  type NodeAuthorizerOptions,
  ownCertificate,
  reservedNameAuthorizer,
  standingLinkAuthorizer,
} from "./node_authorizer.ts";
import { NodeBook } from "./node_book.ts";
import { nodeOfFile, NodeStore } from "./node_store.ts";
import { ensureServerLeaf, SERVER_FILE } from "./leaf_certificates.ts";
import { TokenStore } from "./token_store.ts";
import { noteTrust } from "./authority_step.ts";
import { authorityIdOf } from "../../proto/identity/enrolment.ts";

/**
 * How often the server's certificate is looked at. It is renewed a month before
 * it ends, so what matters is only that this is far less.
 */
const MAINTENANCE_MS = 3600_000;

/** Changes that concern the rest of the server. */
export interface IdentityEvents {
  /** Files of TLS changed: read them again. */
  onCredentials(): void;
  /**
   * The trusted authorities, or the issuing one, have changed: agents need the
   * new bundle.
   */
  onAuthorities(bundle: Uint8Array): void;
  /** Problems that reading the authorities met, if any. */
  onReloaded(problem?: string): void;
  /** Links of a node may no longer be good; of any node, without a name. */
  onNode(name?: string): void;
}

/** What the identity needs from outside. */
export interface ServerIdentityEnvironment {
  /** Absent: all is in the directory that the options name. */
  readonly state?: Omit<StateSource, "warn"> | undefined;
  readonly log: Log;
  readonly metrics: MetricRegistry;
  /** What nodes may claim besides what their records grant. */
  readonly grants: Grants;
  /** Certificates of other authorities pass the handshake, too. */
  readonly trustsOthers: boolean;
  /** Agents that show nothing may register. */
  readonly admitsAnonymous: boolean;
}

/** The server's own authority and the nodes that it knows, on disk. */
export class ServerIdentity {
  /** Joined nodes, for lists. */
  readonly book: NodeBook;
  readonly #service: JoinService;
  readonly #authorizerOptions: NodeAuthorizerOptions;
  /** Read at the start only if unauthenticated peers are admitted. */
  readonly #granted: GrantedAddresses;
  readonly #duplicates: DuplicateRecords;
  /** One after the other: the last word stays. */
  #keeping: Promise<void> = Promise.resolve();
  /** Certificates that were looked at, and by which authorities. */
  readonly #servers = new WeakMap<
    PeerIdentity,
    { readonly by: Authorities; readonly isServer: boolean }
  >();
  #authorities: Authorities;
  #events: IdentityEvents | undefined;
  #stopWatching = () => {};
  #maintenance: Timer | undefined;

  private constructor(
    readonly state: Store,
    /** The data of this machine alone. */
    private readonly local: DirectoryStore,
    authorities: Authorities,
    private readonly options: ServerIdentityOptions,
    private readonly environment: ServerIdentityEnvironment,
  ) {
    const { log, metrics, grants, trustsOthers } = environment;
    this.#authorities = authorities;
    const nodes = new NodeStore(state);
    this.book = new NodeBook(nodes);
    const trusted = () => this.#authorities;
    this.#authorizerOptions = {
      nodes,
      authorities: trusted,
      trustsOthers,
      log,
      admitted: new WeakMap(),
      grants,
    };
    this.#granted = new GrantedAddresses({ nodes, grants, log });
    this.#duplicates = new DuplicateRecords(state);
    this.#service = new JoinService({
      state,
      nodes,
      tokens: new TokenStore(state),
      authorities: trusted,
      granted: this.#granted,
      trustsOthers,
      clock: systemTimers,
      now: Date.now,
      certificateLifeMs: options.nodeCertificateLifeMs,
      log,
      counted: counted(
        metrics,
        "identity_calls",
        "Calls that ask for an identity, by method and status.",
        "method",
        "status",
      ),
    });
  }

  /**
   * Opens the state directory, or makes it on the first start.
   *
   * @throws {StoreError} When it is there and not whole. Never makes a new CA
   *   in place of one that was lost.
   */
  static async open(
    options: ServerIdentityOptions,
    environment: ServerIdentityEnvironment,
  ): Promise<ServerIdentity> {
    const { stateDirectory } = options;
    const { log } = environment;
    const source: StateSource = {
      connection: directoryConnection(stateDirectory),
      ...environment.state,
      warn: (line) => log.warn(line, { code: "TUN333" }),
    };
    const { connection } = source;
    const state = await openOrCreateState(
      source,
      stateDirectory,
      createAuthorities,
      loadAuthorities,
    );
    const { content: authorities } = state;
    const identity = new ServerIdentity(
      state.store,
      state.local,
      authorities,
      options,
      environment,
    );
    if (state.isNew) {
      environment.log.info("made a certificate authority of our own", {
        [connection.kind]: connection.name,
        authority: authorityIdOf(authorities.current.facts),
      });
    }
    await identity.#renewFiles();
    if (environment.admitsAnonymous) await identity.#granted.loaded();
    return identity;
  }

  /** For TLS on the agent port; see `Credentials`. */
  get files(): Required<CredentialFiles> {
    const server = this.local.path(SERVER_FILE);
    return { cert: server, key: server, ca: this.local.path("ca/bundle.crt") };
  }

  /** The one that issues, and those that are trusted besides. */
  get authorities(): Authorities {
    return this.#authorities;
  }

  /** Whom agents are to trust, PEM; the one that issues first. */
  get bundle(): Uint8Array {
    return new TextEncoder().encode(this.#authorities.bundle);
  }

  /** Asked first: about our own certificates, and about names in use. */
  get authorizers(): readonly Authorizer[] {
    return [
      nodeAuthorizer(this.#authorizerOptions),
      reservedNameAuthorizer(this.#authorizerOptions),
    ];
  }

  /**
   * About what nodes were granted; to be asked before unauthenticated peers get
   * in.
   */
  get anonymousAuthorizers(): readonly Authorizer[] {
    return this.environment.admitsAnonymous ? [this.#granted.authorize] : [];
  }

  /** About links that stand, when something has changed. */
  get standing(): readonly Authorizer[] {
    const standing = standingLinkAuthorizer(this.#authorizerOptions);
    if (!this.environment.admitsAnonymous) return [standing];
    return [standing, this.#granted.authorizeStanding];
  }

  /** The node that an agent was admitted as. */
  nodeOf({ identity }: LinkPeer): string | undefined {
    return this.#authorizerOptions.admitted.get(identity);
  }

  /**
   * Whether a certificate is that of a server of our authority. No node can
   * join by that name (`isNodeName`), and nodes' common names begin with
   * another prefix.
   */
  isServer(identity: PeerIdentity): boolean {
    if (identity.commonName !== TUNNEL_SERVER_NAME) return false;
    const known = this.#servers.get(identity);
    if (known?.by === this.#authorities) return known.isServer;
    const isServer = ownCertificate(this.#authorizerOptions, identity).isOurs;
    this.#servers.set(identity, { by: this.#authorities, isServer });
    return isServer;
  }

  /** For `tunnel node list`; nothing else depends on it. */
  keepDuplicate(record: DuplicateRecord): void {
    const { nodes } = this.#authorizerOptions;
    this.#keeping = this.#keeping.then(async () => {
      // A node that was forgotten meanwhile leaves nothing to the next of that
      // name.
      if (nodes.read(record.node) === undefined) {
        await this.#duplicates.remove(record.node);
      } else await this.#duplicates.write(record);
    }).catch((error: Error) =>
      this.environment.log.warn(
        `Cannot keep for \`tunnel node list\` that ${record.node} is linked ` +
          `twice: ${error.message}`,
        { code: "TUN905" },
      )
    );
  }

  /** The identity calls of one connection. */
  methods(caller: ConnectionPeer): Readonly<Record<string, MethodHandler>> {
    return this.#service.methods(caller);
  }

  /** A linked agent reports its trusted authorities. */
  async noteTrust(
    identity: PeerIdentity,
    trusted: readonly string[],
  ): Promise<void> {
    const node = this.#authorizerOptions.admitted.get(identity);
    const { certificate } = identity;
    if (node === undefined || certificate === undefined) return;
    try {
      await noteTrust(
        this.#authorizerOptions,
        node,
        certificate.publicKeySha256,
        trusted,
      );
    } catch (error) {
      if (!(error instanceof StoreError)) throw error;
      // It is said again when the agent links again.
      if (!(error instanceof StoreAwayError)) {
        logState(this.environment.log, error);
      }
    }
  }

  /** Records where agents connect, for `tunnel token create`. */
  noteAddress(agents: string): Promise<boolean> {
    const { serverNames } = this.options;
    const serving = { agents, names: serverNames };
    return noteAddress(this.local, serving, (line) => this.#warnUnkept(line));
  }

  /** Starts to notice changes and to renew the server's certificate. */
  watch(events: IdentityEvents): void {
    this.#events = events;
    // A hint, never the truth: records are read when it matters.
    this.#stopWatching = this.state.watch({
      onChange: (folder, names) =>
        folder === "ca" ? this.#noteAuthorities(names) : this.#noteNodes(names),
      onProblem: (line) => this.environment.log.warn(line, { code: "TUN802" }),
    });
    const maintain = () => {
      this.#maintenance = systemTimers.after(MAINTENANCE_MS, () => {
        unawaited("identity", this.reload());
        maintain();
      });
    };
    maintain();
  }

  /** Reads the authorities again. What cannot be read changes nothing. */
  async reload(): Promise<void> {
    try {
      const before = this.#authorities.bundle;
      this.#authorities = await loadAuthorities(this.state);
      const hasChanged = this.#authorities.bundle !== before;
      const isRenewed = await this.#renewFiles();
      this.#events?.onReloaded();
      if (hasChanged || isRenewed) this.#events?.onCredentials();
      if (!hasChanged) return;
      this.environment.log.info("the certificate authorities have changed", {
        issuing: authorityIdOf(this.#authorities.current.facts),
      });
      this.#events?.onAuthorities(this.bundle);
    } catch (error) {
      if (!(error instanceof StoreError)) throw error;
      this.#events?.onReloaded(error.message);
      logState(
        this.environment.log,
        error,
        "; the earlier content stays in use",
      );
    }
  }

  /** Several files change at once. */
  #noteAuthorities(names: readonly string[] = [ROLES_NAME]): void {
    if (names.includes(ROLES_NAME)) unawaited("identity", this.reload());
  }

  #noteNodes(names: readonly string[] | undefined): void {
    if (names === undefined) return this.#noteNode(undefined);
    for (const name of names) {
      const node = nodeOfFile(name);
      if (node !== undefined) this.#noteNode(node);
    }
  }

  #noteNode(name: string | undefined): void {
    this.book.changed(name);
    if (!this.#granted.isWanted) return this.#events?.onNode(name);
    if (name !== undefined) this.#granted.note(name);
    this.#events?.onNode(name);
    if (name !== undefined) return;
    this.#granted.load().then(
      () => this.#events?.onNode(),
      (error) =>
        this.environment.log.error(`Cannot read the nodes: ${error.message}`, {
          code: tunnelCodeOf(error) ?? "TUN801",
        }),
    );
  }

  close(): void {
    this.#stopWatching();
    this.#maintenance?.cancel();
    this.#events = undefined;
    unawaited("identity", this.state.close());
  }

  #warnUnkept(line: string): void {
    this.environment.log.warn(line, { code: "TUN905" });
  }

  /** Files that follow from the authorities. @returns Whether the leaf is new. */
  #renewFiles(): Promise<boolean> {
    const { serverNames } = this.options;
    return this.local.exclusively(async () => {
      const warn = (line: string) => this.#warnUnkept(line);
      await repairBundle(this.local, this.#authorities, warn);
      const why = await ensureServerLeaf(
        this.local,
        this.#authorities,
        serverNames,
        Date.now(),
        warn,
      );
      if (why === undefined) return false;
      this.environment.log.info(`issued a certificate for this server: ${why}`);
      return true;
    });
  }
}

/** What every change of authorities writes. */
const ROLES_NAME = AUTHORITY_ROLES.slice(AUTHORITY_ROLES.indexOf("/") + 1);
