/**
 * The rules that the published texts have for their fields (protoc-gen-validate):
 * Envoy refuses whatever breaks one.
 *
 * Layer: xDS. The rules stand in our texts as in the published ones; here they
 * are found there and applied to messages as plain data. A rule that this module
 * does not know is an error, not a rule less.
 *
 * @module
 */

import protobuf from "protobufjs";
import { type Duration, msOf } from "./messages/google_messages.ts";
import { typeOfUrl, xdsType } from "./schema.ts";

/** What is wrong with a value, such as `is empty`. */
type Check = (value: unknown) => string | undefined;

/** What one field of a message is looked at for. */
interface FieldPlan {
  readonly key: string;
  /** As the texts spell it. */
  readonly name: string;
  readonly shape: "one" | "list" | "map";
  readonly isRequired: boolean;
  /** For a field that has a default and no absence. */
  readonly fallback: unknown;
  /** Of all values together, of a list. */
  readonly whole: readonly Check[];
  /** Of each value. */
  readonly each: readonly Check[];
  readonly keys: readonly Check[];
  /** Of messages: their type. */
  readonly type: protobuf.Type | undefined;
}

interface MessagePlan {
  readonly fields: readonly FieldPlan[];
  /** Groups of fields of which one has to be set. */
  readonly choices: readonly { name: string; keys: readonly string[] }[];
}

/** A rule's arguments by its name, such as `{ min_len: 1 }`. */
type Rules = Readonly<Record<string, unknown>>;

const plans = new Map<protobuf.Type, MessagePlan>();

/** Contents of `Any` fields that many messages share are looked at once. */
const sound = new WeakSet<Uint8Array>();

/**
 * The first rule that a message breaks.
 *
 * @param name Of the message, in full.
 * @returns Such as `lb_policy is 77, which is not defined`; `undefined` when
 *   there is none.
 */
export function brokenRule(name: string, message: object): string | undefined {
  return lookAt(xdsType(name), message, "");
}

function lookAt(
  type: protobuf.Type,
  message: object,
  path: string,
): string | undefined {
  const plan = planOf(type);
  const values = message as Readonly<Record<string, unknown>>;
  for (const { name, keys } of plan.choices) {
    if (!keys.some((key) => isThere(values[key]))) {
      return `${path}${name} has to be set`;
    }
  }
  for (const field of plan.fields) {
    const problem = lookAtField(field, values[field.key], path + field.name);
    if (problem !== undefined) return problem;
  }
  return undefined;
}

function lookAtField(
  field: FieldPlan,
  value: unknown,
  path: string,
): string | undefined {
  if (field.shape === "list") {
    const items = (value ?? []) as readonly unknown[];
    const problem = firstOf(field.whole, items);
    if (problem !== undefined) return `${path} ${problem}`;
    for (const [index, item] of items.entries()) {
      const wrong = lookAtValue(field, item, `${path}[${index}]`);
      if (wrong !== undefined) return wrong;
    }
    return undefined;
  }
  if (field.shape === "map") {
    for (const [key, item] of Object.entries(value ?? {})) {
      const wrong = firstOf(field.keys, key);
      if (wrong !== undefined) return `a key of ${path} ${wrong}`;
      const inside = lookAtValue(field, item, `${path}[${key}]`);
      if (inside !== undefined) return inside;
    }
    return undefined;
  }
  if (isThere(value)) return lookAtValue(field, value, path);
  if (field.isRequired) return `${path} has to be set`;
  return field.fallback === undefined
    ? undefined
    : lookAtValue(field, field.fallback, path);
}

function lookAtValue(
  { each, type }: FieldPlan,
  value: unknown,
  path: string,
): string | undefined {
  const problem = firstOf(each, value);
  if (problem !== undefined) return `${path} ${problem}`;
  if (type === undefined) return undefined;
  return type.fullName === ".google.protobuf.Any"
    ? lookInto(value as { typeUrl?: string; value?: Uint8Array }, path)
    : lookAt(type, value as object, `${path}.`);
}

/** What is in an `Any`, if it is a message that we have a text of. */
function lookInto(
  any: { readonly typeUrl?: string; readonly value?: Uint8Array },
  path: string,
): string | undefined {
  const type = typeOfUrl(any.typeUrl ?? "");
  const octets = any.value ?? new Uint8Array(0);
  if (type === undefined || sound.has(octets)) return undefined;
  const message = type.toObject(type.decode(octets), { longs: Number });
  const problem = lookAt(type, message, `${path}.`);
  if (problem === undefined) sound.add(octets);
  return problem;
}

function planOf(type: protobuf.Type): MessagePlan {
  let plan = plans.get(type);
  if (plan === undefined) plans.set(type, plan = makePlan(type));
  return plan;
}

function makePlan(type: protobuf.Type): MessagePlan {
  const fields = type.fieldsArray.map(planField).filter((field) =>
    field.isRequired || field.type !== undefined ||
    field.whole.length + field.each.length + field.keys.length > 0
  );
  const choices = type.oneofsArray
    .filter(({ options }) => options?.["(validate.required)"] === true)
    .map(({ name, oneof }) => ({ name: snakeCase(name), keys: oneof }));
  return { fields, choices };
}

function planField(field: protobuf.Field): FieldPlan {
  const [kind, rules] = rulesOf(field);
  const type = field.resolvedType instanceof protobuf.Type
    ? field.resolvedType
    : undefined;
  const isValue = type?.fullName.startsWith(".google.protobuf.") ?? false;
  const isAny = type?.fullName === ".google.protobuf.Any";
  const { required, items, keys, ...own } = rules;
  const shape = field.map ? "map" : field.repeated ? "list" : "one";
  const checks = checksOf(kind, own, field);
  return {
    key: field.name,
    name: snakeCase(field.name),
    shape,
    // One of several is required together with them.
    isRequired: required === true && !field.partOf,
    fallback: shape === "one" && type === undefined && !field.partOf
      ? field.typeDefault
      : undefined,
    whole: shape === "list" ? checks : [],
    each: shape === "one" ? checks : checksInside(items, field),
    keys: checksInside(keys, field),
    type: isValue && !isAny ? undefined : type,
  };
}

/** A field's rules, and what they are for; none: `["", {}]`. */
function rulesOf(field: protobuf.Field): [string, Rules] {
  const options = (field.parsedOptions ?? []) as readonly Rules[];
  const found = options.find((option) => "(validate.rules)" in option);
  const [only] = Object.entries(found?.["(validate.rules)"] ?? {});
  return only === undefined ? ["", {}] : [only[0], only[1] as Rules];
}

/** Rules for items of lists and keys of maps, such as `{ string: … }`. */
function checksInside(rules: unknown, field: protobuf.Field): Check[] {
  return Object.entries((rules ?? {}) as Rules).flatMap(([kind, own]) =>
    checksOf(kind, own as Rules, field)
  );
}

function checksOf(kind: string, rules: Rules, field: protobuf.Field): Check[] {
  if (kind === "string") return textChecks(rules);
  return Object.entries(rules).map(([rule, limit]) => {
    if (rule === "defined_only") return definedOnly(field);
    if (rule === "const") {
      return (value) => value === limit ? undefined : `has to be ${limit}`;
    }
    if (rule === "min_items" || rule === "max_items") {
      return countCheck(rule, limit as number);
    }
    const bound = BOUNDS[rule];
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

const BOUNDS: Readonly<Record<string, Bound>> = {
  gt: { words: "above", isKept: (value, limit) => value > limit },
  gte: { words: "at least", isKept: (value, limit) => value >= limit },
  lt: { words: "below", isKept: (value, limit) => value < limit },
  lte: { words: "at most", isKept: (value, limit) => value <= limit },
};

/** `strict: false` of a header lets pass what cannot end its line. */
const LOOSE_LINE = /^[^\0\n\r]*$/;
const STRICT: Readonly<Record<string, RegExp>> = {
  HTTP_HEADER_NAME: /^:?[0-9a-zA-Z!#$%&'*+\-.^_|~`]+$/,
  // deno-lint-ignore no-control-regex -- control characters are the point.
  HTTP_HEADER_VALUE: /^[^\x00-\x08\x0a-\x1f\x7f]*$/,
};

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
    : STRICT[well_known_regex as string];
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

/** A number, or one in a message of its own. */
function plainNumber(value: unknown): number {
  if (typeof value === "object" && value !== null && "value" in value) {
    return plainNumber(value.value);
  }
  return typeof value === "number" ? value : 0;
}

function secondsOf(value: unknown): number {
  return msOf(value as Duration) / 1000;
}

function firstOf(
  checks: readonly Check[],
  value: unknown,
): string | undefined {
  for (const check of checks) {
    const problem = check(value);
    if (problem !== undefined) return problem;
  }
  return undefined;
}

function isThere(value: unknown): boolean {
  return value !== undefined && value !== null;
}

function snakeCase(name: string): string {
  return name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}
