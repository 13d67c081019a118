/**
 * What `.ci/run` is made of, and which of it may run beside what.
 *
 * @module
 */

/** One command, whose end and total count. */
export interface Step {
  readonly name: string;
  /** A task of `deno.json` and its arguments, or words for the packaged file. */
  readonly words: readonly string[];
  readonly of?: "task" | "program";
  /** Of two cores, what it keeps busy while it runs, from 0 to 1. */
  readonly weight: number;
  /** Names of steps that have to be over. */
  readonly after?: readonly string[];
}

/** Steps that may begin together keep so much of the machine busy. */
const CAPACITY = 1;

/** What takes up the machine: nothing that looks at a clock runs beside it. */
const WHOLE = CAPACITY;

/**
 * In an order that keeps the machine busy until the end: the two longest ways
 * (`kubelet` after `kube`, `test-alone` after `test-slow`) first, and what takes
 * long with little computing before what others could wait for. The weights are
 * of `lab/test-times.md`: seconds of computing by seconds of two cores.
 */
// deno-fmt-ignore: the columns are the point.
export const STEPS: readonly Step[] = [
  // What others start and meet: built or downloaded when it is missing.
  { name: "peers", words: ["lab", "peers"], weight: WHOLE },
  // Beside each other they are over no sooner.
  { name: "test", words: ["test"], weight: WHOLE },
  { name: "ok", words: ["ok", "fmt", "lint", "check", "layers", "tidy"], weight: WHOLE },
  { name: "kube", words: ["lab", "kube"], weight: 0.2, after: ["ok"] },
  { name: "kubelet", words: ["lab", "kubelet", "1"], weight: 0.3, after: ["kube"] },
  { name: "test-slow", words: ["test:slow", "slow"], weight: 0.6, after: ["ok"] },
  { name: "test-alone", words: ["test:slow", "alone"], weight: 0.25, after: ["test-slow"] },
  { name: "docs-lines", words: ["lab", "docs"], weight: 0.2, after: ["ok"] },
  { name: "conformance", words: ["lab", "conformance"], weight: 0.05, after: ["ok"] },
  { name: "suite", words: ["lab", "suite", "--strict"], weight: 0.15, after: ["ok"] },
  { name: "xds", words: ["lab", "xds"], weight: 0.35, after: ["ok"] },
  { name: "dashboard", words: ["lab", "dashboard"], weight: 0.1, after: ["ok"] },
  { name: "release", words: ["lab", "release"], weight: 0.45, after: ["ok"] },
  { name: "etcd", words: ["lab", "etcd"], weight: 0.25, after: ["ok"] },
  { name: "proxy-real", words: ["lab", "proxy"], weight: 0.25, after: ["ok"] },
  { name: "grpc", words: ["lab", "grpc"], weight: 0.2, after: ["ok"] },
  { name: "demo", of: "program", words: ["demo"], weight: 0.5, after: ["ok"] },
  { name: "grpcurl", words: ["lab", "grpcurl"], weight: 0.05, after: ["ok"] },
  { name: "matrix", words: ["lab", "matrix"], weight: 0.7, after: ["ok"] },
  { name: "prometheus", words: ["lab", "prometheus"], weight: 0.2, after: ["ok"] },
  { name: "package-test", words: ["lab", "package"], weight: WHOLE, after: ["ok"] },
  // Konnectivity's client loses what comes later than a few milliseconds.
  { name: "promises", words: ["lab", "promises"], weight: WHOLE, after: ["ok"] },
  // It checks what a fault may cost, in time, too.
  { name: "chaos", words: ["lab", "chaos", "--cut", "--strict", "--seed", "17"], weight: WHOLE, after: ["ok"] },
];

/**
 * The steps that begin now: in their order, who has what it needs and fits
 * beside what is under way. A heavy one is waited for, or light ones would pass
 * it for ever.
 *
 * @param waiting Those that have not begun, in their order.
 * @param running Those under way.
 */
export function startable(
  waiting: readonly Step[],
  running: readonly Step[],
): Step[] {
  const open = new Set([...waiting, ...running].map(({ name }) => name));
  const starting: Step[] = [];
  let load = running.reduce((sum, { weight }) => sum + weight, 0);
  for (const step of waiting) {
    if (step.after?.some((name) => open.has(name))) continue;
    // Rounded, or three tenths and seven are more than one.
    if (Math.round((load + step.weight) * 100) > CAPACITY * 100) {
      if (step.weight === WHOLE) break;
      continue;
    }
    load += step.weight;
    starting.push(step);
  }
  return starting;
}
