/**
 * Makes the platform's own TLS client trust only the authorities it is given.
 *
 * `Deno.connectTls` adds its `caCerts` to the public roots, so that anybody
 * with a certificate from any public authority could pose as the server of a
 * private one. The platform reads its list of public roots once, when TLS is
 * used first; until then `DENO_TLS_CA_STORE` says which they are, and an empty
 * list means none (documented in `deno help`). `node:tls` needs none of this:
 * its `ca` replaces the public roots.
 *
 * @module
 */

/**
 * Forgets the public roots, for the whole process and for its life. Call it
 * before anything has used TLS.
 *
 * @returns Whether that is so; false when `DENO_CERT` gave the platform another
 *   root, which cannot be taken back.
 */
export function trustOnlyGivenAuthorities(): boolean {
  if ((Deno.env.get("DENO_CERT") ?? "") !== "") return false;
  Deno.env.set("DENO_TLS_CA_STORE", "");
  return true;
}
