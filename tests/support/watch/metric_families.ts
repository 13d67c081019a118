/**
 * Reads the families in a scrape, to compare them with a table, and what a
 * program counts.
 *
 * @module
 */

/**
 * Type, names of the labels (of the family's first series, with commas between)
 * and HELP of each family.
 *
 * @param text In Prometheus' text format.
 * @param prefix Only families that begin so; the names come without it.
 */
export function familiesIn(
  text: string,
  prefix: string,
): Record<string, [type: string, labels: string, help: string]> {
  const families: Record<string, [string, string, string]> = {};
  const pattern =
    /^# HELP (\S+) (.*)\n# TYPE \S+ (\w+)\n[^{ \n]+(?:\{(.*)\})? /gm;
  for (const [, name, help, type, labels = ""] of text.matchAll(pattern)) {
    if (!name!.startsWith(prefix)) continue;
    const names = [...labels.matchAll(/(\w+)="/g)].map(([, label]) => label);
    families[name!.slice(prefix.length)] = [type!, names.join(","), help!];
  }
  return families;
}

/** Names in `text`, a scrape, that the operator's documentation does not have. */
export function undocumented(text: string): string[] {
  const page = new URL("../../../docs/reference/metrics.md", import.meta.url);
  const words = new Set(Deno.readTextFileSync(page).match(/\w+/g));
  return [...text.matchAll(/^# TYPE (\S+)/gm)].map(([, name]) =>
    name!.replace(/^konnectivity_network_proxy_(?:server|agent)_/, "")
  ).filter((name) => !words.has(name));
}

/** Connections that a server has made, ours or another one of that kind. */
export const SERVER_DIALS =
  "konnectivity_network_proxy_server_dial_duration_seconds_count";

/**
 * A metric of a program.
 *
 * @param url Where its `/metrics` are.
 * @returns The sum over all labels; 0 when there is none, or no answer.
 */
export async function sumOf(url: string, name: string): Promise<number> {
  const answer = await fetch(`${url}/metrics`).catch(() => undefined);
  const line = new RegExp(`^${name}(?:{[^}]*})? (\\S+)$`, "gm");
  const values = (await answer?.text() ?? "").matchAll(line);
  return [...values].reduce((sum, [, value]) => sum + Number(value), 0);
}
