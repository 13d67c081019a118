/**
 * The shape of a document: which fields its maps have, and of which type each
 * is. For who looks at a whole document at once: an editor, or a person who wants
 * to know all that is wrong. What a document means, and whether it can be used,
 * is for its reader.
 *
 * @module
 */

import { clipped } from "../../proto/peer/quoted.ts";
import { didYouMean, nearest } from "../text/nearest.ts";
import {
  type DocumentPath,
  FieldError,
  kindOfValue,
  pathText,
} from "./document_map.ts";
import { parseGoDuration } from "./go_duration.ts";

/** What may stand somewhere. */
export type Shape =
  /** `check` says what is wrong with a text; `pattern` says it to editors. */
  | {
    readonly kind: "text";
    readonly pattern?: RegExp;
    readonly wanted?: string;
    readonly check?: (text: string) => string | undefined;
  }
  | { readonly kind: "word"; readonly words: readonly string[] }
  | { readonly kind: "number"; readonly least: number; readonly most: number }
  | { readonly kind: "boolean" }
  /** Of Go: `500ms`, `1m30s`. */
  | { readonly kind: "duration"; readonly leastMs: number }
  | {
    readonly kind: "list";
    readonly of: Shape;
    readonly least?: number;
    readonly most?: number;
  }
  | MapShape
  /** A map whose keys the writer chooses. */
  | { readonly kind: "names"; readonly of: Shape }
  /** One of several; what is wrong is said of the nearest. */
  | { readonly kind: "either"; readonly of: readonly Shape[] };

/** A map with known fields. */
export interface MapShape {
  readonly kind: "map";
  readonly fields: Readonly<Record<string, Shape>>;
  readonly required?: readonly string[];
  /** Of each of these lists one field at least. */
  readonly someOf?: readonly (readonly string[])[];
  /** Exactly one of these. */
  readonly oneOf?: readonly string[];
  /** An empty value is a mistake; else it counts as absent. */
  readonly isStrict?: boolean;
  /** Of another program: there may be fields that ours does not read. */
  readonly isOpen?: boolean;
}

/** Problems that are looked for: a document may be all wrong. */
export const SHAPE_PROBLEMS_MAX = 100;

/** All that is wrong with the shape of a document, in its order. */
export function shapeProblems(shape: Shape, value: unknown): FieldError[] {
  const problems: FieldError[] = [];
  look(shape, value, [], problems);
  return problems.slice(0, SHAPE_PROBLEMS_MAX);
}

function look(
  shape: Shape,
  value: unknown,
  place: DocumentPath,
  problems: FieldError[],
): void {
  if (problems.length >= SHAPE_PROBLEMS_MAX) return;
  const say = (problem: string) =>
    void problems.push(new FieldError(place, problem));
  switch (shape.kind) {
    case "list":
      if (!Array.isArray(value)) {
        return say(`saw ${kindOfValue(value)}, wanted a list`);
      }
      if (value.length < (shape.least ?? 0)) say("wanted one at least");
      if (value.length > (shape.most ?? Infinity)) {
        return say(`saw ${value.length} entries, ${shape.most} are allowed`);
      }
      return value.forEach((item, index) =>
        look(shape.of, item, [...place, index], problems)
      );
    case "map":
      return lookAtMap(shape, value, place, problems);
    case "names":
      if (!isMap(value)) return say(`saw ${kindOfValue(value)}, wanted a map`);
      for (const [key, item] of Object.entries(value)) {
        look(shape.of, item, [...place, key], problems);
      }
      return;
    case "either": {
      const tries = shape.of.map((one) => {
        const found: FieldError[] = [];
        look(one, value, place, found);
        return found;
      });
      const [nearest] = tries.toSorted((a, b) => a.length - b.length);
      problems.push(...nearest!);
      return;
    }
    default: {
      const problem = scalarProblem(shape, value);
      if (problem !== undefined) say(problem);
    }
  }
}

type Scalar = Exclude<
  Shape,
  { readonly kind: "list" | "map" | "names" | "either" }
>;

function scalarProblem(shape: Scalar, value: unknown): string | undefined {
  const seen = typeof value === "string"
    ? `"${clipped(value)}"`
    : typeof value === "number"
    ? `${value}`
    : kindOfValue(value);
  switch (shape.kind) {
    case "text": {
      if (typeof value !== "string") {
        return `saw ${kindOfValue(value)}, wanted a text; quote it if needed`;
      }
      if (shape.pattern?.test(value) === false) {
        return `saw ${seen}, wanted ${shape.wanted}`;
      }
      return shape.check?.(value);
    }
    case "word": {
      if (shape.words.some((word) => word === value)) return undefined;
      const hint = typeof value === "string"
        ? didYouMean(value.slice(0, 100), shape.words)
        : "";
      return `saw ${seen}, wanted ${shape.words.join(", ")}${hint}`;
    }
    case "number": {
      const { least, most } = shape;
      const isGood = Number.isInteger(value) && Number(value) >= least &&
        Number(value) <= most;
      return isGood ? undefined : `saw ${seen}, wanted ${least} to ${most}`;
    }
    case "boolean":
      return typeof value === "boolean"
        ? undefined
        : `saw ${seen}, wanted true or false`;
    case "duration": {
      const ms = typeof value === "string" ? parseGoDuration(value) : undefined;
      return ms !== undefined && ms >= shape.leastMs
        ? undefined
        : `saw ${seen}, wanted a time such as 500ms, 10s or 1m30s`;
    }
  }
}

function lookAtMap(
  shape: MapShape,
  value: unknown,
  place: DocumentPath,
  problems: FieldError[],
): void {
  const names = Object.keys(shape.fields);
  if (!isMap(value)) {
    const problem = `saw ${kindOfValue(value)}, wanted a map of ` +
      names.join(", ");
    return void problems.push(new FieldError(place, problem));
  }
  const present = new Set<string>();
  for (const [key, item] of Object.entries(value)) {
    const at = [...place, key];
    if (!Object.hasOwn(shape.fields, key)) {
      if (shape.isOpen) continue;
      const near = nearest(key.slice(0, 100), names);
      const hint = near === undefined
        ? `wanted one of ${names.join(", ")}`
        : `did you mean ${near}?`;
      problems.push(new FieldError(at, `there is no such field; ${hint}`));
      continue;
    }
    const isEmpty = item === null || item === undefined;
    if (isEmpty && !shape.isStrict) continue;
    present.add(key);
    if (shape.isStrict && (isEmpty || item === "")) {
      const problem = "saw nothing, wanted a value; quote it if needed, or " +
        "take it out";
      problems.push(new FieldError(at, problem));
    } else look(shape.fields[key]!, item, at, problems);
  }
  const said = lacking(shape, present);
  if (said !== undefined) problems.push(new FieldError(place, said));
}

function lacking(
  { required = [], someOf, oneOf }: MapShape,
  present: ReadonlySet<string>,
): string | undefined {
  const missing = required.filter((name) => !present.has(name));
  if (missing.length > 0) return `${missing.join(" and ")} is missing; add it`;
  const count = (names: readonly string[]) =>
    names.filter((name) => present.has(name)).length;
  const none = someOf?.find((names) => count(names) === 0);
  if (none !== undefined) {
    return `wanted one of ${none.join(", ")} at least; add it`;
  }
  if (oneOf !== undefined && count(oneOf) !== 1) {
    return `wanted exactly one of ${oneOf.join(", ")}`;
  }
  return undefined;
}

function isMap(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Whether a problem is said already, there or in what is in it. */
export function isSaid(
  problems: readonly FieldError[],
  { place }: FieldError,
): boolean {
  const text = pathText(place);
  return problems.some((one) => pathText(one.place).startsWith(text));
}
