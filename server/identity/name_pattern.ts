/**
 * Patterns of node names: `*` stands for any characters, `?` for one.
 *
 * @module
 */

/** Whether `name` matches. Takes time in proportion to both lengths at most. */
export function matchesPattern(pattern: string, name: string): boolean {
  let p = 0;
  let n = 0;
  // Where to go on when the characters behind the last star do not fit.
  let star = -1;
  let resume = 0;
  while (n < name.length) {
    const wanted = pattern[p];
    if (wanted === "*") {
      star = p++;
      resume = n;
    } else if (wanted === "?" || wanted === name[n]) {
      p++;
      n++;
    } else if (star >= 0) {
      p = star + 1;
      n = ++resume;
    } else return false;
  }
  while (pattern[p] === "*") p++;
  return p === pattern.length;
}

/** Whether a pattern can match the name of any node. */
export function isNamePattern(text: string): boolean {
  return text.length <= 253 && /^[a-z0-9._*?-]+$/.test(text);
}
