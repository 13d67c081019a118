/**
 * A client of the etcd cluster that a configuration means.
 *
 * @module
 */

import type { Timers } from "../../proto/sync/clock.ts";
import {
  type CredentialFiles,
  Credentials,
  CredentialsError,
  type TlsMaterial,
} from "../../net/tls/trust/credentials.ts";
import { EtcdClient, type EtcdUser } from "./client.ts";
import { EtcdConfigError } from "./errors.ts";
import { memberConnector, parseEtcdMember } from "./members.ts";

/** The members, and the credentials for them. */
export interface EtcdOptions {
  /** `http://…`, `https://…` or `HOST:PORT`; see `members.ts`. */
  readonly servers: readonly string[];
  /** For `https`; without a CA the public ones are trusted. */
  readonly tls: CredentialFiles;
  readonly user?: EtcdUser;
}

/** How old the content of the TLS files may get. */
const REREAD_MS = 60_000;

/** Members that are kept in mind; etcd advises against more than seven. */
const MEMBERS_MAX = 64;

/**
 * Reads the files. No request is sent yet.
 *
 * @throws {EtcdConfigError} One sentence.
 */
export function connectEtcd(options: EtcdOptions, timers: Timers): EtcdClient {
  const { servers, tls, user } = options;
  if (servers.length === 0 || servers.length > MEMBERS_MAX) {
    throw new EtcdConfigError(
      `Cannot use ${servers.length} addresses of etcd: wanted 1 to ` +
        `${MEMBERS_MAX}`,
    );
  }
  const hasTls = tls.ca !== undefined || tls.cert !== undefined;
  const members = servers.map((text) => parseEtcdMember(text, hasTls));
  const plain = members.findIndex(({ isTls }) => !isTls);
  if (hasTls && plain >= 0) {
    throw new EtcdConfigError(
      `Cannot use etcd address "${servers[plain]}" with a certificate or a ` +
        "CA: wanted https://",
    );
  }
  return new EtcdClient({
    members,
    connect: memberConnector(materialOf(tls, timers)),
    timers,
    random: Math.random,
    user,
  });
}

/** The files' content, read again once a minute when there is a connection. */
function materialOf(files: CredentialFiles, timers: Timers): () => TlsMaterial {
  let credentials: Credentials;
  try {
    credentials = Credentials.load(files);
  } catch (error) {
    if (!(error instanceof CredentialsError)) throw error;
    throw new EtcdConfigError(error.message, { cause: error });
  }
  let readMs = timers.now();
  return () => {
    if (timers.now() - readMs < REREAD_MS) return credentials.current;
    readMs = timers.now();
    return credentials.latest();
  };
}
