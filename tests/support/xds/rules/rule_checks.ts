/**
 * The published rules (protoc-gen-validate) for one value, as functions.
 *
 * Only the rules that our texts have; any other one is an error, not
 * a rule less.
 *
 * @module
 */

import type protobuf from "protobufjs/light.js";
import type { Duration } from "../../../../proto/xds/xds_messages.ts";

/** The fault of a value, such as `is empty`. */
export type Check = (value: unknown) => string | undefined;

/** A rule's arguments by its name, such as `{ min_len: 1 }`. */
export type Rules = Readonly<Record<string, unknown>>;

/**
 * The checks of a set of rules.
 *
 * @param kind What the rules are for, such as `string` or `uint32`.
 * @throws {TypeError} For a rule that is not known here.
 */
export function checksOf(
  kind: string,
  rules: Rules,
  field: protobuf.Field,
): Check[] {
  if (kind === "string") return textChecks(rules);
  return Object.entries(rules).map(([rule, limit]) => {
    if (rule === "defined_only") return definedOnly(field);
    if (rule === "const") {
      return (value) => value === limit ? undefined : `has to be ${limit}`;
    }
    if (rule === "min_items" || rule === "max_items") {
      return countCheck(rule, limit as number);
    }
    const bound = BOUNDS.get(rule);
    if (bound === undefined) {
      throw new TypeError(`${field.fullName} has an unknown rule: ${rule}`);
    }
    const numberOf = kind === "duration" ? secondsOf : plainNumber;
    const most = numberOf(limit);
    const unit = kind === "duration" ? " s" : "";
    return (value) => {
      const seen = numberOf(value);
      return bound.isKept(seen, most)
        ? undefined
        : `is ${seen}${unit}, it has to be ${bound.words} ${most}${unit}`;
    };
  });
}

interface Bound {
  readonly words: string;
  isKept(value: number, limit: number): boolean;
}

const BOUNDS: ReadonlyMap<string, Bound> = new Map<string, Bound>(
  Object.entries({
    gt: { words: "above", isKept: (value, limit) => value > limit },
    gte: { words: "at least", isKept: (value, limit) => value >= limit },
    lt: { words: "below", isKept: (value, limit) => value < limit },
    lte: { words: "at most", isKept: (value, limit) => value <= limit },
  }),
);

/** `strict: false` of a header lets pass what cannot end its line. */
const LOOSE_LINE = /^[^\0\n\r]*$/;
const STRICT: ReadonlyMap<string, RegExp> = new Map<string, RegExp>(
  Object.entries({
    HTTP_HEADER_NAME: /^:?[0-9a-zA-Z!#$%&'*+\-.^_|~`]+$/,
    // deno-lint-ignore no-control-regex -- control characters are the point.
    HTTP_HEADER_VALUE: /^[^\x00-\x08\x0a-\x1f\x7f]*$/,
  }),
);

function textChecks(
  { min_len, pattern, well_known_regex, strict, ...unknown }: Rules,
): Check[] {
  const [rule] = Object.keys(unknown);
  if (rule !== undefined) throw new TypeError(`Unknown rule: ${rule}`);
  const checks: Check[] = [];
  if (min_len !== undefined) {
    checks.push((value) =>
      (value as string).length >= (min_len as number) ? undefined : "is empty"
    );
  }
  const wanted = pattern !== undefined
    ? new RegExp(pattern as string, "u")
    : well_known_regex === undefined
    ? undefined
    : strict === false
    ? LOOSE_LINE
    : STRICT.get(well_known_regex as string);
  if (wanted !== undefined) {
    checks.push((value) =>
      wanted.test(value as string)
        ? undefined
        : `is ${JSON.stringify(value)}, which ${wanted} does not match`
    );
  }
  return checks;
}

function countCheck(rule: string, limit: number): Check {
  return (value) => {
    const { length } = value as readonly unknown[];
    if (rule === "min_items" ? length >= limit : length <= limit) {
      return undefined;
    }
    const words = rule === "min_items" ? "at least" : "at most";
    return `has ${length} entries, it has to have ${words} ${limit}`;
  };
}

function definedOnly({ resolvedType }: protobuf.Field): Check {
  const { valuesById } = resolvedType as protobuf.Enum;
  return (value) =>
    valuesById[value as number] === undefined
      ? `is ${value}, which is not defined`
      : undefined;
}

/** A number, or a message that wraps one. */
function plainNumber(value: unknown): number {
  if (typeof value === "object" && value !== null && "value" in value) {
    return plainNumber(value.value);
  }
  return typeof value === "number" ? value : 0;
}

function secondsOf(value: unknown): number {
  const { seconds = 0, nanos = 0 } = value as Duration;
  return seconds + nanos / 1e9;
}
