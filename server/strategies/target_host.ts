/**
 * The host of a dial's address, as strategies compare it.
 *
 * @module
 */

/**
 * Takes the port off `address` the way Konnectivity does (its
 * `RemovePortFromHost`): text with at most one colon loses what follows it,
 * IPv6 loses a port only when it is bracketed, brackets always go.
 */
export function targetHost(address: string): string {
  const bracketed = /^\[([^\]]*)\](?::.*)?$/.exec(address);
  if (bracketed !== null) return bracketed[1]!;
  const colon = address.indexOf(":");
  if (colon === -1 || colon !== address.lastIndexOf(":")) return address;
  return address.slice(0, colon);
}
