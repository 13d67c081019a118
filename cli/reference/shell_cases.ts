/**
 * The cases of a `case` in bash and zsh alike: what may stand behind a flag, or
 * behind a verb. What a shell does to offer it is that shell's business.
 *
 * @module
 */

import type { CommandWords, WordOffer } from "./command_words.ts";

/** What a shell calls to offer words. */
type OfferOf = (offer: WordOffer) => string;

/** By `COMMAND --flag`. */
export function valueCases(
  { name, flags }: CommandWords,
  offerOf: OfferOf,
): readonly string[] {
  return flags.filter(({ value }) => value.kind !== "none").map((flag) => {
    const words = [`--${flag.name}`, ...flag.short ? [`-${flag.short}`] : []];
    const patterns = words.map((word) => `"${name} ${word}"`).join(" | ");
    return `  ${patterns}) ${offerOf(flag.value)} ;;`;
  });
}

/** By `COMMAND VERB`. */
export function operandCases(
  { name, verbs, operand }: CommandWords,
  offerOf: OfferOf,
): readonly string[] {
  return [
    ...verbs.map(({ name: verb, operand }) =>
      [`"${name} ${verb}"`, operand] as const
    ),
    ...verbs.length === 0 ? [[`"${name} "*`, operand] as const] : [],
  ].filter(([, { kind }]) => kind !== "none" && kind !== "anything")
    .map(([pattern, operand]) => `  ${pattern}) ${offerOf(operand)} ;;`);
}
