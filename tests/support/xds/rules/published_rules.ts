/**
 * The rules that the published texts have for their fields
 * (protoc-gen-validate): Envoy refuses a message that breaks one.
 *
 * The rules stand in our texts as in the published ones; this
 * module finds them there and applies them to messages as plain data. A rule
 * that it does not know is an error, and is not skipped.
 *
 * @module
 */

import protobuf from "protobufjs/light.js";
import { type Any, SCHEMA } from "../../../../proto/xds/xds_messages.ts";
import { type Check, checksOf, type Rules } from "./rule_checks.ts";

/** The checks of one field of a message. */
interface FieldPlan {
  readonly key: string;
  /** In the spelling of the texts. */
  readonly name: string;
  readonly shape: "one" | "list" | "map";
  readonly isRequired: boolean;
  /** For a field with a default, which is never absent. */
  readonly fallback: unknown;
  /** For all values of a list together. */
  readonly whole: readonly Check[];
  /** Of each value. */
  readonly each: readonly Check[];
  readonly keys: readonly Check[];
  /** For messages: their type, unless it has no rule to check. */
  readonly type: protobuf.Type | undefined;
  /** It is an `Any`: its content names its type. */
  readonly isAny: boolean;
}

interface MessagePlan {
  readonly fields: readonly FieldPlan[];
  /** Groups of fields of which one has to be set. */
  readonly choices: readonly { name: string; keys: readonly string[] }[];
}

const plans = new Map<protobuf.Type, MessagePlan>();

/** Contents of `Any` fields that many messages share are looked at once. */
const sound = new WeakSet<Uint8Array>();
const NO_BYTES = new Uint8Array(0);

/**
 * The first rule that a message breaks.
 *
 * @param name Of the message, in full.
 * @returns Such as `lb_policy is 77, which is not defined`; `undefined` when
 *   there is none.
 */
export function brokenRule(name: string, message: object): string | undefined {
  const problem = lookAt(SCHEMA.type(name), message);
  return problem && `${problem.path} ${problem.text}`;
}

/**
 * The place and the fault. Paths are built on the way back, because few are
 * needed.
 */
interface Problem {
  readonly path: string;
  readonly text: string;
}

function lookAt(type: protobuf.Type, message: object): Problem | undefined {
  const plan = planOf(type);
  const values = message as Readonly<Record<string, unknown>>;
  for (const { name, keys } of plan.choices) {
    if (!keys.some((key) => isThere(values[key]))) {
      return { path: name, text: "has to be set" };
    }
  }
  for (const field of plan.fields) {
    const problem = lookAtField(field, values[field.key]);
    if (problem !== undefined) return under(field.name, problem);
  }
  return undefined;
}

/** Paths in its answer begin after the field's name. */
function lookAtField(field: FieldPlan, value: unknown): Problem | undefined {
  switch (field.shape) {
    case "list":
      return lookAtList(field, (value ?? []) as readonly unknown[]);
    case "map":
      return lookAtMap(
        field,
        (value ?? {}) as Readonly<Record<string, unknown>>,
      );
    case "one":
      if (isThere(value)) return lookAtValue(field, value);
      if (field.isRequired) return { path: "", text: "has to be set" };
      return field.fallback === undefined
        ? undefined
        : lookAtValue(field, field.fallback);
  }
}

function lookAtList(
  field: FieldPlan,
  items: readonly unknown[],
): Problem | undefined {
  const text = firstOf(field.whole, items);
  if (text !== undefined) return { path: "", text };
  for (let index = 0; index < items.length; index++) {
    const problem = lookAtValue(field, items[index]);
    if (problem !== undefined) return under(`[${index}]`, problem);
  }
  return undefined;
}

function lookAtMap(
  field: FieldPlan,
  entries: Readonly<Record<string, unknown>>,
): Problem | undefined {
  for (const [key, item] of Object.entries(entries)) {
    const wrong = firstOf(field.keys, key);
    if (wrong !== undefined) {
      return { path: "", text: `has a key that ${wrong}` };
    }
    const problem = lookAtValue(field, item);
    if (problem !== undefined) return under(`[${key}]`, problem);
  }
  return undefined;
}

function lookAtValue(
  { each, type, isAny }: FieldPlan,
  value: unknown,
): Problem | undefined {
  const text = firstOf(each, value);
  if (text !== undefined) return { path: "", text };
  if (type === undefined) return undefined;
  const problem = isAny
    ? lookInto(value as Any)
    : lookAt(type, value as object);
  return problem && under(".", problem);
}

/** The content of an `Any`, if we have a text of its message. */
function lookInto(
  { typeUrl = "", value = NO_BYTES }: Any,
): Problem | undefined {
  const type = SCHEMA.typeOfUrl(typeUrl);
  if (type === undefined || sound.has(value)) return undefined;
  const message = type.toObject(type.decode(value), { longs: Number });
  const problem = lookAt(type, message);
  if (problem === undefined) sound.add(value);
  return problem;
}

function under(path: string, problem: Problem): Problem {
  return { path: path + problem.path, text: problem.text };
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
    isAny,
  };
}

/** A field's rules, and their kind; none: `["", {}]`. */
function rulesOf({ options }: protobuf.Field): [string, Rules] {
  const rules = options?.["(validate.rules)"] ?? {};
  const [only] = Object.entries(rules as Readonly<Record<string, Rules>>);
  return only ?? ["", {}];
}

/** Rules for items of lists and keys of maps, such as `{ string: … }`. */
function checksInside(rules: unknown, field: protobuf.Field): Check[] {
  return Object.entries((rules ?? {}) as Rules).flatMap(([kind, own]) =>
    checksOf(kind, own as Rules, field)
  );
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
