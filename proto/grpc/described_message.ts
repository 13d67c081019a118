/**
 * The TypeScript type of a message, derived from the descriptor that encodes
 * it, so that each field is stated once, in its `.proto` file.
 *
 * Types only; it knows no particular message.
 *
 * @module
 */

/** What a field holds that is neither a message nor an enum. */
interface Scalars<Wide> {
  readonly string: string;
  readonly bytes: Uint8Array;
  readonly bool: boolean;
  readonly double: number;
  readonly int32: number;
  readonly uint32: number;
  readonly int64: Wide;
  readonly uint64: Wide;
}

/** A message or an enum in what a package, or a message, has. */
type Inside<Space, Path extends string> = Path extends keyof Space ? Space[Path]
  : Path extends `${infer Outer}.${infer Rest}`
    ? Outer extends keyof Space
      ? Space[Outer] extends { readonly nested: infer Nested }
        ? Inside<Nested, Rest>
      : never
    : never
  : never;

/** What the packages say of a full name. */
type Described<Packages, Name extends string> = {
  [Package in keyof Packages & string]: Name extends `${Package}.${infer Path}`
    ? Inside<Packages[Package], Path>
    : never;
}[keyof Packages & string];

/** One value of a field. A peer may say a number that no enum has. */
type Value<Packages, Wide, Type, Form extends "all" | "present"> = Type extends
  keyof Scalars<Wide> ? Scalars<Wide>[Type]
  : Type extends string
    ? Described<Packages, Type> extends { readonly values: object } ? number
    : Form extends "present" ? PresentMessage<Packages, Type>
    : WholeMessage<Packages, Type>
  : never;

/** All values of a field. */
type Held<Packages, Wide, Field, Form extends "all" | "present"> = Field extends
  { readonly keyType: string; readonly type: infer Type }
  ? Readonly<Record<string, Value<Packages, Wide, Type, Form>>>
  : Field extends { readonly rule: "repeated"; readonly type: infer Type }
    ? readonly Value<Packages, Wide, Type, Form>[]
  : Field extends { readonly type: infer Type }
    ? Value<Packages, Wide, Type, Form>
  : never;

/** A message that has what is on the wire; 64 bits are numbers. */
export type PresentMessage<Packages, Name extends string> =
  Described<Packages, Name> extends { readonly fields: infer Fields } ? {
      readonly [Key in keyof Fields]?:
        | Held<Packages, number, Fields[Key], "present">
        | undefined;
    }
    : never;

/** Fields of which at most one is there. */
type Choices<Message> = Message extends {
  readonly oneofs: Readonly<Record<string, { readonly oneof: infer Names }>>;
} ? Names extends readonly (infer Key)[] ? Key : never
  : never;

/**
 * The value of a field that is not on the wire, if it is not of the field's
 * type.
 */
type Absent<Packages, Field> = Field extends
  { readonly rule: string } | { readonly keyType: string } ? never
  : Field extends { readonly type: infer Type extends string }
    ? Type extends keyof Scalars<unknown> ? never
    : Described<Packages, Type> extends { readonly fields: object } ? null
    : never
  : never;

type Flat<T> = { [Key in keyof T]: T[Key] };

/** A message with all fields, with their defaults; 64 bits are decimal texts. */
export type WholeMessage<Packages, Name extends string> =
  Described<Packages, Name> extends { readonly fields: infer Fields } ? Flat<
      & {
        readonly [
          Key in Exclude<
            keyof Fields,
            Choices<Described<Packages, Name>>
          >
        ]:
          | Held<Packages, string, Fields[Key], "all">
          | Absent<Packages, Fields[Key]>;
      }
      & {
        readonly [
          Key in Extract<
            keyof Fields,
            Choices<Described<Packages, Name>>
          >
        ]?: Held<Packages, string, Fields[Key], "all">;
      }
    >
    : never;
