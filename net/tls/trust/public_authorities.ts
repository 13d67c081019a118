/**
 * The authorities that a TLS client trusts if it has none of its own: those
 * that the platform trusts, for either engine, so that a server is not good for
 * one and bad for the other.
 *
 * That is the platform's own list (Mozilla's), and what operators add to it or
 * put in its place: `DENO_TLS_CA_STORE=system` for the machine's store,
 * `DENO_CERT` and `NODE_EXTRA_CA_CERTS` for one file more. OpenSSL's own
 * default paths are not used: they differ from one distribution to the next,
 * and some images have none.
 *
 * @module
 */

import tls from "node:tls";

let known: string | undefined;

/**
 * Read once; files that change count from the next start.
 *
 * @returns PEM.
 * @throws {Deno.errors.NotCapable} A program that embeds this one does not
 *   allow it: the platform's TLS needs no list from here.
 */
export function publicAuthorities(): string {
  return known ??= read();
}

function read(): string {
  // Queried first, because an attempt without the permission would prompt.
  if (Deno.permissions.querySync({ name: "env" }).state !== "granted") {
    throw new Deno.errors.NotCapable("the environment may not be read");
  }
  const listed = tls.getCACertificates("default");
  // The platform trusts it, and leaves it out of that list.
  const file = Deno.env.get("DENO_CERT") ?? "";
  const given = file === "" ? [] : [Deno.readTextFileSync(file)];
  return [...new Set([...listed, ...given])].join("\n");
}
