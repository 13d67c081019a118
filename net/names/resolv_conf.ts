/**
 * What has to be known of a resolv.conf(5) file before `Deno.resolveDns`, which
 * reads it for itself, is asked.
 *
 * @module
 */

/**
 * - `servers`: `Deno.resolveDns` asks them as the C library would.
 * - `stub`: they are systemd-resolved, so asking them is asking it.
 * - `special`: only the C library can ask them as the file wants.
 */
export type NameServers = "servers" | "stub" | "special";

/** Where systemd-resolved listens. */
const STUBS: ReadonlySet<string> = new Set(["127.0.0.53", "127.0.0.54"]);

/** `Deno.resolveDns` reads over this: queries go by TCP only. */
const BY_TCP = /^options\b.*[ \t]use-vc(?:[ \t]|$)/m;

export function nameServersOf(text: string): NameServers {
  const servers = [...text.matchAll(/^nameserver[ \t]+(\S+)/gm)]
    .map(([, server]) => server!);
  // It forgets the interface of `fe80::1%eth0`.
  const hasZone = servers.some((server) => server.includes("%"));
  if (hasZone || BY_TCP.test(text)) return "special";
  const isStub = servers.length > 0 &&
    servers.every((server) => STUBS.has(server));
  return isStub ? "stub" : "servers";
}
