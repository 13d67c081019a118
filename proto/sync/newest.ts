/**
 * Tables about peers, who come and go, hold the newest entries only.
 *
 * @module
 */

/** Sets an entry as the newest one; above `most` the oldest one is forgotten. */
export function setNewest<Key, Value>(
  entries: Map<Key, Value>,
  key: Key,
  value: Value,
  most: number,
): void {
  entries.delete(key);
  entries.set(key, value);
  if (entries.size <= most) return;
  const [oldest] = entries.keys();
  entries.delete(oldest!);
}
