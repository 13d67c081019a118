/**
 * The `traceparent` field of W3C Trace Context, levels 1 and 2: the trace of a
 * call, and the span that made it.
 *
 * Callers may send anything: a field that is not exactly valid is ignored.
 * `tracestate` is not passed on: only its writer understands it, and it may be
 * dropped.
 *
 * @module
 */

/** In a call's metadata, and among the headers of a CONNECT request. */
export const TRACEPARENT_FIELD = "traceparent";

/** The position of a span. */
export interface TraceContext {
  /** 32 hexadecimal digits, not all zero. */
  readonly traceId: string;
  /** 16 hexadecimal digits, not all zero. */
  readonly spanId: string;
  /** W3C's, such as {@linkcode SAMPLED_FLAG}. */
  readonly flags: number;
}

/** A bit of {@linkcode TraceContext.flags}: the caller records its spans. */
export const SAMPLED_FLAG = 1;

/** A later version may add members behind these, and keeps them (§3.2.1). */
const TRACEPARENT =
  /^(?!ff)([0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;

/** A longer value may be valid in a later version, which we do not know. */
const LENGTH_MAX = 255;

/** A caller's field. @param values All fields of that name: two are invalid. */
export function readTraceparent(
  values: readonly string[],
): TraceContext | undefined {
  const [value] = values;
  if (values.length !== 1 || value!.length > LENGTH_MAX) return undefined;
  const match = TRACEPARENT.exec(value!);
  if (match === null) return undefined;
  const [, version, traceId, spanId, flags, more] = match;
  if (version === "00" && more !== undefined) return undefined;
  return { traceId: traceId!, spanId: spanId!, flags: parseInt(flags!, 16) };
}

/** The value of {@linkcode TRACEPARENT_FIELD}, as version 00 writes it. */
export function formatTraceparent(
  { traceId, spanId, flags }: TraceContext,
): string {
  // Other flags mean something of who set them (§4.2): sampled and random.
  return `00-${traceId}-${spanId}-0${flags & 3}`;
}
