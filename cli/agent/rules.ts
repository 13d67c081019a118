/**
 * `--allow`, `--deny`, `--allow-preset`: which targets an agent may dial.
 *
 * @module
 */

import { parseRule, type Rule, RuleError } from "../../policy/rule.ts";
import { type LabelledRule, RuleSet } from "../../policy/rule_set.ts";
import {
  type Flag,
  flag,
  type FlagDetails,
  FlagValueError,
} from "../flags/flag.ts";

/** Values of `--allow-preset`; empty: everything, unless rules are given. */
export const ALLOW_PRESETS = ["", "all", "all-tcp", "loopback"] as const;

/** See {@linkcode ALLOW_PRESETS}. */
export type AllowPreset = (typeof ALLOW_PRESETS)[number];

const PRESET_RULES: Readonly<
  Record<Exclude<AllowPreset, "">, readonly string[]>
> = {
  all: ["*:*:*"],
  "all-tcp": ["tcp:*:*"],
  loopback: ["*:127.0.0.0/8:*", "*:[::1]:*"],
};

/**
 * A list of rules. One text may hold several, as environment variables must:
 * a comma before `tcp:`, `udp:`, `unix:` or `*:` begins the next one, any other
 * comma is part of a list of ports.
 */
export function rulesFlag(details: FlagDetails): Flag<readonly Rule[]> {
  return flag.parsedList((text) => {
    try {
      return text.split(/,\s*(?=(?:tcp|udp|unix|\*):)/i).map(parseRule);
    } catch (error) {
      if (!(error instanceof RuleError)) throw error;
      throw new FlagValueError(error.detail, true);
    }
  }, { placeholder: "RULE", ...details });
}

/**
 * What the three flags mean together.
 *
 * @returns `undefined` when tcp and udp may go anywhere, which is the default.
 */
export function agentRules(
  flags: {
    readonly allow: readonly Rule[];
    readonly deny: readonly Rule[];
    readonly preset: AllowPreset;
  },
): RuleSet | undefined {
  const { allow, deny } = flags;
  const preset = flags.preset === "" && allow.length === 0
    ? "all"
    : flags.preset;
  if (preset === "all" && allow.length === 0 && deny.length === 0) {
    return undefined;
  }
  const label = (flag: string) => (rule: Rule): LabelledRule => ({
    rule,
    label: `${flag} ${rule.text}`,
  });
  const presets = preset === "" ? [] : PRESET_RULES[preset];
  return new RuleSet({
    allow: [
      ...allow.map(label("--allow")),
      ...presets.map((text) => ({
        rule: parseRule(text),
        label: `--allow-preset=${preset}`,
      })),
    ],
    deny: deny.map(label("--deny")),
  });
}
