/**
 * How a protobuf message looks as plain data here.
 *
 * Layer: xDS. Knows no particular message.
 *
 * @module
 */

/**
 * A message: every field may be missing and has its default then (zero, empty,
 * false; for a message: not there), as on the wire.
 */
export type Fields<T extends object> = {
  readonly [K in keyof T]?: T[K] | undefined;
};
