/**
 * The content of many resources, as one number: it does not depend on their order,
 * and a change costs only what changed. For people who compare versions, and for
 * nothing that must not be forged.
 *
 * @module
 */

import type { Resource } from "../../../proto/xds/resource.ts";

/** Four numbers of 32 bits, and how many resources they are of. */
export interface ContentSum {
  readonly words: Uint32Array;
  readonly count: number;
}

/** Odd, and unlike each other: the fractions of square roots of primes. */
const FACTORS = [0x6a09e667, 0xbb67ae85, 0x3c6ef373, 0xa54ff53b] as const;

const WORDS = FACTORS.length;

const NOTHING: ContentSum = Object.freeze({
  words: new Uint32Array(WORDS),
  count: 0,
});

/** By resource: kept, since buckets of the same resources are made anew. */
const known = new WeakMap<Resource, ContentSum>();

/** The sum of resources. */
export function sumOf(resources: Iterable<Resource>): ContentSum {
  return total(function* () {
    for (const resource of resources) yield sumOfOne(resource);
  });
}

/** The sum of sums, which is the sum of all resources behind them. */
export function total(sums: () => Iterable<ContentSum>): ContentSum {
  let words: Uint32Array | undefined;
  let count = 0;
  for (const sum of sums()) {
    words ??= new Uint32Array(WORDS);
    for (let at = 0; at < WORDS; at++) words[at]! += sum.words[at]!;
    count += sum.count;
  }
  return words === undefined ? NOTHING : { words, count };
}

/** As a version: 32 hexadecimal digits. */
export function contentVersion({ words, count }: ContentSum): string {
  let text = "";
  for (let at = 0; at < WORDS; at++) {
    const word = mixed(words[at]! ^ Math.imul(count + 1, FACTORS[at]!));
    text += word.toString(16).padStart(8, "0");
  }
  return text;
}

function sumOfOne(resource: Resource): ContentSum {
  let sum = known.get(resource);
  if (sum === undefined) {
    const words = new Uint32Array(FACTORS);
    read(resource.kind, words);
    read(resource.name, words);
    read(resource.version, words);
    for (let at = 0; at < WORDS; at++) words[at] = mixed(words[at]!);
    known.set(resource, sum = { words, count: 1 });
  }
  return sum;
}

/** FNV-1a, four times over. */
function read(text: string, words: Uint32Array): void {
  for (let at = 0; at < text.length; at++) {
    const unit = text.charCodeAt(at);
    for (let word = 0; word < WORDS; word++) {
      words[word] = Math.imul(words[word]! ^ unit, 0x01000193 + 2 * word);
    }
  }
  for (let word = 0; word < WORDS; word++) {
    words[word] = Math.imul(words[word]! ^ text.length, 0x85ebca6b);
  }
}

/** So that each bit depends on each: the end of MurmurHash3. */
function mixed(word: number): number {
  let hash = word;
  hash = Math.imul(hash ^ hash >>> 16, 0x85ebca6b);
  hash = Math.imul(hash ^ hash >>> 13, 0xc2b2ae35);
  return (hash ^ hash >>> 16) >>> 0;
}
