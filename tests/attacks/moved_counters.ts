/**
 * Which of a server's counters an attack has moved.
 *
 * @module
 */

/** Counters that say that somebody overdid something. */
const TELLING: readonly string[] = [
  "peer_faults",
  "limits_reached",
  "refused_agents",
  "refused_callers",
  "budget_resets",
  "identity_",
].map((name) => `tunnel_server_${name}`);

/** By name with labels. */
export async function readCounters(
  url: string,
): Promise<ReadonlyMap<string, number>> {
  const response = await fetch(url);
  const counters = new Map<string, number>();
  for (const line of (await response.text()).split("\n")) {
    if (!TELLING.some((name) => line.startsWith(name))) continue;
    const space = line.lastIndexOf(" ");
    counters.set(line.slice(0, space), Number(line.slice(space + 1)));
  }
  return counters;
}

/** Such as `peer_faults{code="…"} +3`. */
export function changesOf(
  before: ReadonlyMap<string, number>,
  after: ReadonlyMap<string, number>,
): string[] {
  return [...after].flatMap(([name, value]) => {
    const change = value - (before.get(name) ?? 0);
    const short = name.replace(/^tunnel_server_/, "").replace("_total", "");
    return change === 0 ? [] : [`\`${short}\` +${change}`];
  });
}
