/**
 * The identity of a node, followed by a program that is no agent: a proxy, a
 * forward, a dial. It renews, receives other authorities, and takes what
 * another program of the same node has put in place.
 *
 * Servers send agents their authorities over links. A program without a link
 * asks for them: with each connection, and from time to time while the
 * connection is used.
 *
 * @module
 */

import { messageOf } from "../../platform/errors/error_code.ts";
import type { NodeIdentity } from "../../client/tunnel_route.ts";
import type { Connection } from "../../proto/streams/connection.ts";
import { proxyEnvironment } from "../../net/dial/proxy_environment.ts";
import type {
  ResolvedServer,
  ServerAddress,
} from "../../net/dial/server_addresses.ts";
import {
  type FileWatch,
  watchFiles,
} from "../../platform/files/watch_files.ts";
import { atMost } from "../../platform/time/deadline.ts";
import { unawaited } from "../../platform/errors/internal_errors.ts";
import type { Log } from "../../platform/log/log.ts";
import { systemTimers } from "../../platform/time/system_timers.ts";
import {
  Credentials,
  type TlsMaterial,
} from "../../net/tls/trust/credentials.ts";
import type { TermSource } from "../../net/tls/trust/expiry.ts";
import { TlsHandshakeError } from "../../net/tls/trust/tls_errors.ts";
import { unaryCall } from "../../proto/grpc/client.ts";
import { GrpcError } from "../../proto/grpc/status.ts";
import { IDENTITY_MESSAGE_BYTES_MAX } from "../../proto/identity/enrolment.ts";
import {
  AuthoritiesAnswer,
  AuthoritiesRequest,
  IDENTITY_METHODS,
} from "../../proto/identity/identity_messages.ts";
import { TUNNEL_SERVER_NAME } from "../../proto/identity/node_name.ts";
import type { AgentIdentity } from "./agent_identity.ts";

/** A server is asked for its authorities at most this often. */
const ASK_MS = 25_000;

/** Nor sooner over another connection, which may be another server's. */
const ASK_ANOTHER_MS = 1_000;

const ANSWER_TIMEOUT_MS = 10_000;

/** How long a program that has finished its work waits for an answer. */
const SETTLE_MS = 2_000;

/** The node that has joined, and its servers. */
interface FollowedNode {
  /** The identity's directory. */
  readonly stateDirectory: string;
  /** None: those where the node has joined. */
  readonly addresses: readonly ServerAddress[];
}

interface FollowedIdentityTools {
  readonly log: Log;
  readonly environment: (name: string) => string | undefined;
  /** The program ends soon: due renewals are done before anything else. */
  readonly isBrief?: boolean;
}

/** The open parts of an identity. */
interface Opened {
  readonly identity: AgentIdentity;
  readonly credentials: Credentials;
  readonly watch: FileWatch;
}

/**
 * Nothing is read before the first connection; an identity that cannot be used
 * is a sentence then, each time, until it can.
 */
export class FollowedIdentity implements NodeIdentity {
  #opening: Promise<Opened> | undefined;
  #opened: Opened | undefined;
  #isStopped = false;
  #askedMs = -Infinity;
  #askedOver: Connection | undefined;
  #problem: string | undefined;
  #asking: Promise<void> | undefined;

  constructor(
    private readonly node: FollowedNode,
    private readonly tools: FollowedIdentityTools,
  ) {}

  /** Why certificates keep this node from servers now, if they do. */
  get problem(): string | undefined {
    return this.#problem;
  }

  /** The certificate that it shows; empty before it is ready. */
  get certificates(): readonly TermSource[] {
    const credentials = this.#opened?.credentials;
    return credentials === undefined ? [] : [{
      kind: "node",
      renewal: "by itself",
      terms: credentials.terms,
    }];
  }

  get current(): TlsMaterial {
    if (this.#opened === undefined) {
      throw new TypeError("Cannot show an identity: it was not made ready");
    }
    return this.#opened.credentials.current;
  }

  async ready(): Promise<void> {
    this.#opening ??= this.#open();
    try {
      this.#opened = await this.#opening;
      if (this.#isStopped) return this.stop();
      const { identity } = this.#opened;
      await identity.ready();
      if (this.tools.isBrief) await identity.renewDue();
    } catch (error) {
      if (this.#opened === undefined) this.#opening = undefined;
      this.#problem = messageOf(error);
      throw error;
    }
  }

  failed(error: unknown, server: ResolvedServer): boolean {
    if (!(error instanceof TlsHandshakeError)) return false;
    this.#problem = error.message;
    return this.#opened?.identity.failed(error, server) ?? false;
  }

  /** A server hung up without a word, as one may that dislikes the certificate. */
  doubt(): void {
    this.#opened?.identity.doubt();
  }

  used(connection: Connection): void {
    this.#problem = undefined;
    const now = systemTimers.now();
    const isAnother = connection !== this.#askedOver;
    const leastMs = isAnother ? ASK_ANOTHER_MS : ASK_MS;
    if (now - this.#askedMs < leastMs || !connection.isUsable) return;
    this.#askedMs = now;
    this.#askedOver = connection;
    this.#asking = this.#ask(connection);
    unawaited("identity", this.#asking);
  }

  async settled(): Promise<void> {
    if (this.#asking === undefined) return;
    await atMost(systemTimers, SETTLE_MS, this.#asking);
  }

  /** Looks after the certificate no more. */
  stop(): void {
    this.#isStopped = true;
    if (this.#opened === undefined) return;
    const { identity, watch } = this.#opened;
    unawaited("identity", identity.stop());
    watch.close();
  }

  async #open(): Promise<Opened> {
    const { stateDirectory, addresses: servers } = this.node;
    const { log, environment } = this.tools;
    // Loaded when wanted: making requests for certificates is a lot of code.
    const { AgentIdentity } = await import("./agent_identity.ts");
    const identity = await AgentIdentity.open({ stateDirectory }, {
      ...{ log, servers, proxy: proxyEnvironment(environment) },
      isPatient: true,
    });
    const credentials = Credentials.load(identity.files, "by itself");
    identity.start(credentials);
    const watch = watchFiles({
      files: credentials.files,
      timers: systemTimers,
      onFiles: () => void identity.lookAgain(),
      onProblem: (line) => log.warn(line, { code: "TUN905" }),
    });
    return { identity, credentials, watch };
  }

  async #ask(connection: Connection): Promise<void> {
    const { identity } = this.#opened!;
    const before = identity.trusted;
    try {
      const answer = await unaryCall(connection, {
        path: IDENTITY_METHODS.authorities,
        request: AuthoritiesRequest.encode({ trusted: before }),
        authority: TUNNEL_SERVER_NAME,
        scheme: "https",
        timers: systemTimers,
        timeoutMs: ANSWER_TIMEOUT_MS,
        messageBytesMax: IDENTITY_MESSAGE_BYTES_MAX,
      });
      const { authorities } = AuthoritiesAnswer.decode(answer);
      const trusted = await identity.trust(authorities);
      if (trusted.join() === before.join() || this.#isStopped) return;
      // The server records which node trusts which authority, and an operator
      // may wait for that.
      await this.#ask(connection);
    } catch (error) {
      // An older server, or a connection that went: asked again later.
      if (!(error instanceof GrpcError)) throw error;
    }
  }
}
