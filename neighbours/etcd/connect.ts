/**
 * A client of the etcd cluster that a configuration means.
 *
 * @module
 */

import type { Timers } from "../../proto/sync/clock.ts";
import type { CredentialFiles } from "../../net/tls/trust/credentials.ts";
import { EtcdClient, type EtcdUser } from "./client.ts";
import { memberConnector, parseEtcdMember } from "./members.ts";
import { NeighbourConfigError, TlsFiles } from "../tls_files.ts";

/** The members, and the credentials for them. */
export interface EtcdOptions {
  /** `http://…`, `https://…` or `HOST:PORT`; see `members.ts`. */
  readonly servers: readonly string[];
  /** For `https`; without a CA the public ones are trusted. */
  readonly tls: CredentialFiles;
  readonly user?: EtcdUser;
}

/** Members that are kept in mind; etcd advises against more than seven. */
const MEMBERS_MAX = 64;

/**
 * Reads the files. No request is sent yet.
 *
 * @throws {NeighbourConfigError} One sentence.
 */
export function connectEtcd(options: EtcdOptions, timers: Timers): EtcdClient {
  const { servers, tls, user } = options;
  if (servers.length === 0 || servers.length > MEMBERS_MAX) {
    throw new NeighbourConfigError(
      `Cannot use ${servers.length} addresses of etcd: wanted 1 to ` +
        `${MEMBERS_MAX}`,
    );
  }
  const hasTls = tls.ca !== undefined || tls.cert !== undefined;
  const members = servers.map((text) => parseEtcdMember(text, hasTls));
  const plain = members.findIndex(({ isTls }) => !isTls);
  if (hasTls && plain >= 0) {
    throw new NeighbourConfigError(
      `Cannot use etcd address "${servers[plain]}" with a certificate or a ` +
        "CA: wanted https://",
    );
  }
  const files = new TlsFiles(tls, timers);
  return new EtcdClient({
    members,
    connect: memberConnector(() => files.current),
    timers,
    random: Math.random,
    user,
  });
}
