/**
 * A hash of names: quick, and the same for the same name, here and everywhere.
 * An attacker that chooses names can make two that collide, so it spreads and
 * never decides.
 *
 * @module
 */

/** FNV-1a over UTF-16 code units, 32 bits; of ASCII it is what others have. */
export function fnv1a(text: string): number {
  let hash = 0x811c9dc5;
  for (let at = 0; at < text.length; at++) {
    hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193);
  }
  return hash >>> 0;
}
