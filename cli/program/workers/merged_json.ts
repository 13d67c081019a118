/**
 * What several workers tell about themselves on `/debug`, as of one program:
 * lists of clients are joined, and what services have counted is added.
 *
 * @module
 */

/** Lists of things that each worker has of its own. */
const JOINED: ReadonlySet<string> = new Set(["clients"]);

/** Lists of things that all workers have, and what tells these apart. */
const SAME: ReadonlyMap<string, readonly string[]> = new Map([
  ["ports", ["service", "port", "protocol"]],
  ["endpoints", ["address"]],
]);

/** Numbers of which each worker has its part. */
const ADDED: ReadonlySet<string> = new Set([
  "draining",
  "affinityClients",
  "open",
  "total",
  "accepted",
  "refused",
  "retries",
  "failures",
  "ejections",
  "bytesFromClients",
  "bytesToClients",
  "bytesSent",
  "bytesReceived",
  "endedHalfClosed",
  "endedIdle",
  "endedByEndpoint",
  "moved",
  "sessionsRefused",
  "datagramsResent",
  "crowdedOut",
  "datagramsDropped",
]);

/** True of the program when it is true of every worker. */
const OF_ALL: ReadonlySet<string> = new Set(["ready", "isSynced"]);

type Fields = Readonly<Record<string, unknown>>;

/** @param answers At least one; what only the first can know, it says. */
export function mergedJson(answers: readonly unknown[]): unknown {
  const [first] = answers;
  const fields = answers.filter(isFields);
  if (!isFields(first) || fields.length < answers.length) return first;
  return mergedFields(first, fields);
}

function mergedFields(first: Fields, all: readonly Fields[]): Fields {
  const merged = new Map(Object.entries(first));
  for (const [name, value] of merged) {
    const values = all.map((one) => one[name]);
    if (typeof value === "number" && ADDED.has(name)) {
      merged.set(
        name,
        values.reduce<number>((sum, one) => sum + asNumber(one), 0),
      );
    } else if (typeof value === "boolean" && OF_ALL.has(name)) {
      merged.set(name, values.every((one) => one === true));
    } else if (JOINED.has(name) && values.every(Array.isArray)) {
      merged.set(name, values.flat());
    } else if (SAME.has(name) && values.every(Array.isArray)) {
      merged.set(name, mergedList(values, SAME.get(name)!));
    }
  }
  return Object.fromEntries(merged);
}

/** In the order of the first, and then what others have besides. */
function mergedList(
  lists: readonly (readonly unknown[])[],
  names: readonly string[],
): readonly unknown[] {
  const groups = new Map<string, Fields[]>();
  for (const one of lists.flat().filter(isFields)) {
    const key = JSON.stringify(names.map((name) => one[name]));
    groups.set(key, [...groups.get(key) ?? [], one]);
  }
  return [...groups.values()].map((group) => mergedFields(group[0]!, group));
}

function asNumber(value: unknown): number {
  return typeof value === "number" ? value : 0;
}

function isFields(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
