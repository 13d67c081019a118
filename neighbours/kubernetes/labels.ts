/**
 * Labels of Kubernetes objects as people write them.
 *
 * @module
 */

/** An optional prefix (a DNS name) and a name of at most 63 characters. */
const KEY =
  /^(?:[a-z0-9](?:[-a-z0-9.]{0,251}[a-z0-9])?\/)?[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$/;

const VALUE = /^(?:[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$/;

/**
 * Reads `key=value,key=value`.
 *
 * @returns `undefined` when that is not what it is, or when it is empty.
 */
export function parseLabels(
  text: string,
): Readonly<Record<string, string>> | undefined {
  const labels = new Map<string, string>();
  for (const part of text.split(",")) {
    const [key = "", value, ...rest] = part.trim().split("=");
    const isGood = value !== undefined && rest.length === 0 &&
      KEY.test(key) && VALUE.test(value) && !labels.has(key);
    if (!isGood) return undefined;
    labels.set(key, value);
  }
  return Object.fromEntries(labels);
}
