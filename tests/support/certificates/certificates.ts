/**
 * One set of certificates for all tests of a file, good ones and bad ones.
 *
 * @module
 */

import { type CertificatePair, ThrowawayCa } from "./throwaway_ca.ts";

const DAY_MS = 24 * 3600 * 1000;

/** Everything a TLS test needs; PEM throughout. */
export interface Certificates {
  /** The CA that both ends should trust. */
  readonly ca: string;
  /** A CA nobody should trust. */
  readonly otherCa: string;
  /** For `localhost`, `127.0.0.1`, `::1` and `tunnel-server`. */
  readonly server: CertificatePair;
  /** `CN=node1`, `DNS:node1`. */
  readonly client: CertificatePair;
  readonly otherClient: CertificatePair;
  readonly expiredClient: CertificatePair;
  readonly futureClient: CertificatePair;
  /** Good, but for servers only. */
  readonly serverOnly: CertificatePair;
  readonly expiredServer: CertificatePair;
}

const SERVER_NAMES = ["localhost", "127.0.0.1", "::1", "tunnel-server"];

let made: Promise<Certificates> | undefined;

/** Made once per process: keys cost time. */
export function certificates(): Promise<Certificates> {
  return made ??= make();
}

async function make(): Promise<Certificates> {
  const [ca, other] = await Promise.all([
    ThrowawayCa.create("test CA"),
    ThrowawayCa.create("other CA"),
  ]);
  const past = {
    notBefore: new Date(Date.now() - 2 * DAY_MS),
    notAfter: new Date(Date.now() - DAY_MS),
  };
  const future = {
    notBefore: new Date(Date.now() + DAY_MS),
    notAfter: new Date(Date.now() + 2 * DAY_MS),
  };
  const client = {
    commonName: "node1",
    usage: "client",
    names: ["node1"],
  } as const;
  const server = {
    commonName: "tunnel-server",
    usage: "server",
    names: SERVER_NAMES,
  } as const;
  return {
    ca: ca.cert,
    otherCa: other.cert,
    server: await ca.issue(server),
    client: await ca.issue(client),
    otherClient: await other.issue(client),
    expiredClient: await ca.issue({ ...client, ...past }),
    futureClient: await ca.issue({ ...client, ...future }),
    serverOnly: await ca.issue({ ...client, usage: "server" }),
    expiredServer: await ca.issue({ ...server, ...past }),
  };
}
