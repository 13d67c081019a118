/**
 * The `grpc-timeout` header: at most eight digits and a unit.
 *
 * Layer: gRPC. Knows the text form only; timers for it are set in
 * `server_call.ts` and `client_call.ts`.
 *
 * @module
 */

const UNIT_MS: ReadonlyMap<string, number> = new Map(
  Object.entries({
    H: 3_600_000,
    M: 60_000,
    S: 1_000,
    m: 1,
    u: 1e-3,
    n: 1e-6,
  }),
);

/** Coarser and coarser, so that the first unit that fits is the exactest. */
const COARSER_UNITS = ["m", "S", "M", "H"] as const;

/** PROTOCOL-HTTP2: "TimeoutValue → positive integer as ASCII of at most 8 digits". */
const TIMEOUT_VALUE_MAX = 99_999_999;

/**
 * The longest delay that is given to a timer: 2^31 - 1 ms, about 24 days.
 * JavaScript timers fire *at once* beyond it, so that a peer's `99999999H`
 * would end its call immediately. Longer waits are no waits at all.
 */
export const TIMER_DELAY_MS_MAX = 2 ** 31 - 1;

/**
 * Reads a `grpc-timeout` value.
 *
 * @returns Milliseconds, possibly a fraction; `undefined` when malformed.
 */
export function parseTimeout(text: string): number | undefined {
  const match = /^([0-9]{1,8})([HMSmun])$/.exec(text);
  return match === null
    ? undefined
    : Number(match[1]) * UNIT_MS.get(match[2]!)!;
}

/**
 * Writes `timeoutMs` as a `grpc-timeout` value, rounded up: a callee that gives
 * up a little late does no harm, one that gives up early fails calls that are
 * still waited for. Eight digits of hours are the longest value, so more is cut
 * to that.
 */
export function formatTimeout(timeoutMs: number): string {
  if (!(timeoutMs > 0)) return "0m";
  for (const unit of COARSER_UNITS) {
    const value = Math.ceil(timeoutMs / UNIT_MS.get(unit)!);
    if (value <= TIMEOUT_VALUE_MAX) return `${value}${unit}`;
  }
  return `${TIMEOUT_VALUE_MAX}H`;
}
