// deno-lint-ignore-file no-console -- a command that prints what there is.
/**
 * One way to everything that measures, attacks and compares the product:
 * `deno task lab NAME [ARGUMENTS]`; without a name it lists them. Knows only
 * where each begins.
 *
 * @module
 */

interface Program {
  readonly about: string;
  /** Where it begins, from the root. */
  readonly files: readonly string[];
  /** It is run by `deno test`. */
  readonly isTest?: boolean;
}

/** By what one types. */
// deno-fmt-ignore: the columns are the point.
export const PROGRAMS: Readonly<Record<string, Program>> = {
  "peers": { about: "finds or builds the real peers", files: ["tests/support/program/peers.ts"] },
  "conformance": { about: "h2spec against the engine, the server's ports and the agent's link",
    files: ["lab/conformance/h2spec.ts"] },
  "matrix": { about: "servers, agents and clients, ours and Konnectivity's, each with each",
    files: ["lab/interop/matrix.ts"] },
  "kube": { about: "a real kube-apiserver", files: ["lab/interop/kube.ts"] },
  "kubelet": { about: "kubectl before a real kubelet", files: ["lab/interop/real_kubelet/run.ts"] },
  "etcd": { about: "a real etcd", files: ["lab/interop/etcd.ts"] },
  "proxy": { about: "Redis, PostgreSQL, dig and others through a service proxy", files: ["lab/interop/proxy_real.ts"] },
  "xds": { about: "Envoy, grpc-go, grpc-js and C-core as clients of discovery", files: ["lab/interop/xds.ts"] },
  "prometheus": { about: "Prometheus with the rules and alerts of deploy/", files: ["lab/interop/prometheus.ts"] },
  "promises": { about: "what a tunnel promises, over Go ends too", files: ["lab/interop/promises.ts"] },
  "suite": { about: "Konnectivity's own tests", files: ["lab/interop/suite.ts"] },
  "doctor": { about: "faults that tunnel doctor finds", files: ["tests/doctor/doctor_faults_slow_test.ts"],
    isTest: true },
  "grpcurl": { about: "grpcurl against the server's ports", files: ["lab/interop/grpcurl.ts"] },
  "grpc": { about: "gRPC in Go and Node", files: ["lab/interop/grpc/run.ts"] },
  "bench": { about: "speed beside other tunnels", files: ["lab/bench/bench.ts"] },
  "simulate": { about: "a tunnel in memory and virtual time, by seed", files: ["lab/simulation/simulate.ts"] },
  "bench-ha": { about: "what ten thousand agents cost a server", files: ["lab/bench/scale/scale.ts"] },
  "chaos": { about: "faults in namespaces, under a load that checks each byte", files: ["lab/chaos/chaos.ts"] },
  "attacks": { about: "what hostile peers cost", files: ["tests/attacks/attacks.ts"] },
  "recordings": { about: "pictures of commands for the documents", files: ["lab/recordings/recordings.ts"] },
  "mistakes": { about: "mistakes that people make, and what they are told",
    files: ["tests/mistakes/mistakes_slow_test.ts"], isTest: true },
  "dashboard": { about: "the dashboard in a real Chromium",
    files: ["tests/dashboard/page_check.ts", "tests/dashboard/real_check.ts"], isTest: true },
  "docs": { about: "each tunnel line of the documents", files: ["lab/docs/docs_lines.ts"] },
  "release": { about: "a release is made twice, installed, upgraded and purged", files: ["lab/release/run.ts"] },
  "package": { about: "the packaged file on a machine that has nothing", files: ["tests/packaging/package_check.ts"],
    isTest: true },
  "times": { about: "writes how long tests and steps take", files: ["scripts/test_times.ts"] },
};

/** They start programs, namespaces and peers: a narrower right protects nothing. */
const RIGHTS = ["--allow-all", "--unstable-net"];

async function main([name = "", ...args]: readonly string[]): Promise<number> {
  const program = Object.hasOwn(PROGRAMS, name) ? PROGRAMS[name] : undefined;
  if (program === undefined) {
    if (name !== "") console.error(`There is no "${name}" in the laboratory:`);
    for (const [each, { about }] of Object.entries(PROGRAMS)) {
      console.error(`  ${each.padEnd(14)} ${about}`);
    }
    return 2;
  }
  const how = program.isTest ? ["test", "--no-check"] : ["run"];
  const child = new Deno.Command(Deno.execPath(), {
    args: [...how, ...RIGHTS, ...program.files, ...args],
  }).spawn();
  const end = (signal: Deno.Signal) => () => child.kill(signal);
  for (const signal of ["SIGINT", "SIGTERM"] as const) {
    Deno.addSignalListener(signal, end(signal));
  }
  return (await child.status).code;
}

if (import.meta.main) Deno.exit(await main(Deno.args));
