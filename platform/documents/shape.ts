/**
 * The shape of a document, said once: how its values are read, what is wrong with
 * those that cannot be, and the schema that an editor checks them by. What is
 * unknown, missing or of another type is refused by its place, of which
 * `yaml.ts` makes a line.
 *
 * @module
 */

import { clipped } from "../../proto/peer/quoted.ts";
import { didYouMean, nearest } from "../text/nearest.ts";
import { type DocumentPath, FieldError, kindOfValue } from "./field_error.ts";
import { parseGoDuration } from "./go_duration.ts";
import type { JsonSchema } from "./json_schema.ts";

/** Problems that are looked for: a document may be all wrong. */
export const SHAPE_PROBLEMS_MAX = 100;

/** Values of a document: YAML can name one list in another without an end. */
export const VALUES_MAX = 8_000_000;

/** The allowed values of a place, and their meaning. */
export interface Shape<Meaning> {
  readonly schema: JsonSchema;
  /** Whether a value is of the kind at all: of several shapes, the one meant. */
  isOfKind(value: unknown): boolean;
  /** @returns `undefined`: it cannot be used, and `at` was told why. */
  read(value: unknown, at: Reading): Meaning | undefined;
}

/** What a shape reads. */
export type MeaningOf<S> = S extends Shape<infer Meaning> ? Meaning : never;

/** One pass through a document: the present place, and the errors so far. */
export class Reading {
  readonly problems: FieldError[] = [];
  readonly #place: (string | number)[];
  readonly #counts = new Map<Shape<unknown>, number>();
  #left = VALUES_MAX;

  constructor(place: DocumentPath = []) {
    this.#place = [...place];
  }

  get place(): DocumentPath {
    return [...this.#place];
  }

  /** @param inside Where the problem is, from here. */
  say(problem: string, ...inside: DocumentPath): undefined {
    if (this.problems.length >= SHAPE_PROBLEMS_MAX) return;
    this.problems.push(new FieldError([...this.#place, ...inside], problem));
  }

  /** How many values of a shape there were, with `more`, in the whole document. */
  count(shape: Shape<unknown>, more: number): number {
    const count = (this.#counts.get(shape) ?? 0) + more;
    this.#counts.set(shape, count);
    return count;
  }

  /** Says why, and reads nothing more. */
  end(problem: string): undefined {
    this.#left = -1;
    return this.say(problem);
  }

  /** Reads the value of `key`. */
  inside<T>(
    key: string | number,
    shape: Shape<T>,
    value: unknown,
  ): T | undefined {
    if (this.problems.length >= SHAPE_PROBLEMS_MAX || this.#left < 0) return;
    if (this.#left-- === 0) return this.say(`more than ${VALUES_MAX} values`);
    this.#place.push(key);
    const read = shape.read(value, this);
    this.#place.pop();
    return read;
  }
}

/** Reads a value; all its errors are reported at once. */
export function readAll<T>(
  shape: Shape<T>,
  value: unknown,
  place?: DocumentPath,
): { readonly read: T | undefined; readonly problems: readonly FieldError[] } {
  const at = new Reading(place);
  const read = shape.read(value, at);
  return { read, problems: at.problems };
}

/** @throws {FieldError} The first thing that is wrong. */
export function readShape<T>(
  shape: Shape<T>,
  value: unknown,
  place?: DocumentPath,
): T {
  const { read, problems: [first] } = readAll(shape, value, place);
  if (first !== undefined) throw first;
  return read!;
}

/** A shape whose values mean something else than they are. */
export function as<From, To>(
  shape: Shape<From>,
  meaning: (value: From, at: Reading) => To | undefined,
): Shape<To> {
  return {
    ...shape,
    read(value, at) {
      const before = at.problems.length;
      const read = shape.read(value, at);
      return read === undefined || at.problems.length > before
        ? undefined
        : meaning(read, at);
    },
  };
}

// --- Values ------------------------------------------------------------------------

/** A value of a special kind; `read` returns the sentence for a wrong one. */
export function scalar<T>(
  schema: JsonSchema,
  types: readonly ("string" | "number" | "boolean")[],
  read: (value: unknown, at: Reading) => T | undefined,
): Shape<T> {
  const isOfKind = (value: unknown) =>
    (types as readonly string[]).includes(typeof value);
  return { schema, isOfKind, read };
}

export const TEXT: Shape<string> = scalar(
  { type: "string" },
  ["string"],
  readText,
);

/** A non-empty text: an empty one would allow what it should forbid. */
export const FULL_TEXT: Shape<string> = scalar(
  { minLength: 1, type: "string" },
  ["string"],
  (value, at) =>
    value === "" || value === null
      ? at.say(saysNothing(value))
      : readText(value, at),
);

export const FLAG: Shape<boolean> = scalar(
  { type: "boolean" },
  ["boolean"],
  (value, at) =>
    typeof value === "boolean"
      ? value
      : at.say(`saw ${shown(value)}, wanted true or false`),
);

/** `*` begins an alias in YAML, so people meet this with the best of rules. */
function readText(value: unknown, at: Reading): string | undefined {
  if (typeof value === "string") return value;
  return at.say(`saw ${kindOfValue(value)}, wanted a text; quote it if needed`);
}

/** A full text of which more is wanted: `pattern` says it to editors. */
export function text(
  pattern: RegExp,
  problem: (text: string) => string | undefined,
): Shape<string> {
  const schema = { type: "string", pattern: pattern.source };
  return scalar(schema, ["string"], (value, at) => {
    const read = FULL_TEXT.read(value, at);
    const said = read === undefined ? undefined : problem(read);
    return said === undefined ? read : at.say(said);
  });
}

/** One of a few words. */
export function word<const Word extends string>(
  words: readonly Word[],
): Shape<Word> {
  return scalar({ enum: words }, ["string"], (value, at) => {
    const found = words.find((word) => word === value);
    if (found !== undefined) return found;
    const hint = typeof value === "string"
      ? didYouMean(value.slice(0, 100), words)
      : "";
    return at.say(`saw ${shown(value)}, wanted ${words.join(", ")}${hint}`);
  });
}

/** A whole number. */
export function number(minimum: number, maximum: number): Shape<number> {
  const schema = { type: "integer", minimum, maximum };
  return scalar(schema, ["number"], (value, at) => {
    const isGood = typeof value === "number" && Number.isInteger(value) &&
      value >= minimum && value <= maximum;
    return isGood
      ? value
      : at.say(`saw ${shown(value)}, wanted ${minimum} to ${maximum}`);
  });
}

/** Go's durations, as `parseGoDuration` reads them. */
const DURATION = "^[+]?(?:0|(?:(?:\\d+(?:\\.\\d*)?|\\.\\d+)" +
  "(?:ns|us|µs|μs|ms|s|m|h))+)$";

/** Milliseconds of `500ms`, `10s`, `1m30s`, `3h`. */
export function duration(leastMs = 1): Shape<number> {
  const schema = { type: "string", pattern: DURATION };
  return scalar(schema, ["string"], (value, at) => {
    const ms = typeof value === "string" ? parseGoDuration(value) : undefined;
    return ms !== undefined && ms >= leastMs ? ms : at.say(
      `saw ${shown(value)}, wanted a time such as 500ms, 10s or 1m30s`,
    );
  });
}

function shown(value: unknown): string {
  if (typeof value === "string") return `"${clipped(value)}"`;
  return typeof value === "number" ? `${value}` : kindOfValue(value);
}

function saysNothing(value: unknown): string {
  const seen = value === "" ? "an empty text" : "nothing";
  return `saw ${seen}, wanted a value; quote it if needed, or take it out`;
}

// --- What holds values -------------------------------------------------------------

export function list<T>(
  of: Shape<T>,
  { least = 0, most = Infinity, inAll }: {
    readonly least?: number;
    readonly most?: number;
    /** All such lists of a document together. */
    readonly inAll?: readonly [most: number, what: string];
  } = {},
): Shape<readonly T[]> {
  return {
    schema: {
      type: "array",
      items: of.schema,
      ...(least === 0 ? {} : { minItems: least }),
      ...(most === Infinity ? {} : { maxItems: most }),
    },
    isOfKind: Array.isArray,
    read(value, at) {
      if (!Array.isArray(value)) {
        return at.say(`saw ${kindOfValue(value)}, wanted a list`);
      }
      if (value.length < least) return at.say("wanted one at least");
      if (value.length > most) {
        return at.say(`saw ${value.length} entries, ${most} are allowed`);
      }
      if (inAll !== undefined && at.count(of, value.length) > inAll[0]) {
        return at.end(`more than ${inAll[0]} ${inAll[1]}`);
      }
      return value.flatMap((item, i) => at.inside(i, of, item) ?? []);
    },
  };
}

/** A map whose keys the writer chooses. */
export function names<T>(of: Shape<T>): Shape<ReadonlyMap<string, T>> {
  return {
    schema: { type: "object", additionalProperties: of.schema },
    isOfKind: isMap,
    read(value, at) {
      if (!isMap(value)) {
        return at.say(`saw ${kindOfValue(value)}, wanted {NAME: VALUE}`);
      }
      const read = new Map<string, T>();
      for (const [key, item] of Object.entries(value)) {
        const meaning = at.inside(key, of, item);
        if (meaning !== undefined) read.set(key, meaning);
      }
      return read;
    },
  };
}

/** One of several: the one whose kind it is and that has least against it. */
export function either<Shapes extends readonly Shape<unknown>[]>(
  shapes: Shapes,
): Shape<MeaningOf<Shapes[number]>> {
  return {
    schema: { anyOf: shapes.map(({ schema }) => schema) },
    isOfKind: (value) => shapes.some((shape) => shape.isOfKind(value)),
    read(value, at) {
      const meant = shapes.filter((shape) => shape.isOfKind(value));
      const tries = (meant.length === 0 ? shapes : meant)
        .map((shape) => readAll(shape, value, at.place));
      const [best] = tries.toSorted((a, b) =>
        a.problems.length - b.problems.length
      );
      at.problems.push(...best!.problems);
      return best!.read as MeaningOf<Shapes[number]> | undefined;
    },
  };
}

/** Rules for the fields of a map together. */
export interface MapRules<Required extends string> {
  /** By field, the sentence when it is missing. */
  readonly required?: Readonly<Record<Required, string>>;
  /**
   * At least one field of each list must be present; with the sentence when
   * none is.
   */
  readonly someOf?: readonly (readonly [fields: readonly string[], string])[];
  /** Exactly one of these. */
  readonly oneOf?: readonly string[];
  /** A field that is wrong without one of these; with the sentence for that. */
  readonly apart?: readonly (readonly [
    field: string,
    others: readonly string[],
    problem: string,
  ])[];
  /** An empty value is a mistake; else it counts as absent. */
  readonly isStrict?: boolean;
  /** Another program's: it may have fields that ours does not read. */
  readonly isOpen?: boolean;
}

type Fields = Readonly<Record<string, Shape<unknown>>>;

/** The type of a map: absent fields are missing. */
type MapOf<F extends Fields, Required extends string> =
  & { readonly [Key in keyof F & Required]: MeaningOf<F[Key]> }
  & { readonly [Key in Exclude<keyof F, Required>]?: MeaningOf<F[Key]> };

/** A map with known fields. */
export function map<const F extends Fields, Required extends string = never>(
  fields: F,
  rules: MapRules<Required> = {},
): Shape<MapOf<F, Required>> {
  const known = new Map(Object.entries(fields));
  const all = [...known.keys()].join(", ");
  return {
    schema: mapSchema(fields, rules),
    isOfKind: isMap,
    read(value, at) {
      if (!isMap(value)) {
        return at.say(`saw ${kindOfValue(value)}, wanted a map of ${all}`);
      }
      const before = at.problems.length;
      const isEmpty = (key: string) => (value[key] ?? null) === null;
      const keys = Object.keys(value);
      const present = keys.filter((key) => !isEmpty(key));
      const conflict = conflictIn(rules, present);
      if (conflict !== undefined) at.say(...conflict);
      const read = keys.flatMap((key): [string, unknown][] => {
        const shape = known.get(key);
        if (shape === undefined) {
          if (!rules.isOpen) at.say(unknownField(key, known), key);
        } else if (!isEmpty(key)) {
          return [[key, at.inside(key, shape, value[key])]];
        } else if (rules.isStrict) at.say(saysNothing(value[key]), key);
        return [];
      });
      const lacking = lackingIn(rules, present);
      if (lacking !== undefined) at.say(...lacking);
      return at.problems.length > before
        ? undefined
        : Object.fromEntries(read) as MapOf<F, Required>;
    },
  };
}

function unknownField(key: string, known: ReadonlyMap<string, unknown>) {
  const near = nearest(key.slice(0, 100), known.keys());
  return "there is no such field; " +
    (near === undefined
      ? `wanted one of ${[...known.keys()].join(", ")}`
      : `did you mean ${near}?`);
}

type Said = readonly [problem: string, ...inside: DocumentPath];

/** What does not go together, and where. */
function conflictIn(
  { oneOf = [], apart = [] }: MapRules<string>,
  present: readonly string[],
): Said | undefined {
  if (oneOf.filter((key) => present.includes(key)).length > 1) {
    return [`wanted one of ${oneOf.join(", ")}, exactly one`];
  }
  const both = apart.find(([field, others]) =>
    present.includes(field) && others.some((other) => present.includes(other))
  );
  return both && [both[2], both[0]];
}

/** The missing field, and its place. */
function lackingIn(
  { required = {}, someOf = [], oneOf }: MapRules<string>,
  present: readonly string[],
): Said | undefined {
  const isNone = (keys: readonly string[]) =>
    !keys.some((key) => present.includes(key));
  const missing = Object.entries(required).find(([key]) => isNone([key]));
  if (missing !== undefined) return [missing[1], missing[0]];
  const none = someOf.find(([keys]) => isNone(keys));
  if (none !== undefined) return [none[1]];
  return oneOf !== undefined && isNone(oneOf)
    ? [`wanted one of ${oneOf.join(", ")}`]
    : undefined;
}

function mapSchema(
  fields: Fields,
  { required, someOf, oneOf, apart, isStrict, isOpen }: MapRules<string>,
): JsonSchema {
  const having = (names: readonly string[]) =>
    names.map((name) => ({ required: [name] }));
  // `key:` alone counts as absent.
  const orNothing = (schema: JsonSchema) =>
    isStrict ? schema : { anyOf: [schema, { type: "null" }] };
  return {
    type: "object",
    properties: Object.fromEntries(
      Object.entries(fields)
        .map(([name, { schema }]) => [name, orNothing(schema)]),
    ),
    ...(isOpen ? {} : { additionalProperties: false }),
    ...(required === undefined ? {} : { required: Object.keys(required) }),
    ...(someOf === undefined
      ? {}
      : { allOf: someOf.map(([names]) => ({ anyOf: having(names) })) }),
    ...(oneOf === undefined ? {} : { oneOf: having(oneOf) }),
    ...(apart === undefined ? {} : {
      not: {
        anyOf: apart.map(([field, others]) => ({
          required: [field],
          anyOf: having(others),
        })),
      },
    }),
  };
}

function isMap(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
