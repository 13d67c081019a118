/**
 * Everything that needs a real peer: the matrix, the promises, upstream's suite,
 * grpcurl, the gRPC peers, a Kubernetes API server, etcd, real programs through
 * the service proxy, and clients of discovery. Ends with `N passed, N failed, N skipped`.
 *
 * Usage: `deno task interop [--strict]`; strict as in `suite.ts`.
 *
 * @module
 */

import { runSteps } from "./run_steps.ts";
import { Tally } from "../../tests/support/watch/tally.ts";

if (import.meta.main) {
  const tally = new Tally();
  await runSteps([
    { name: "matrix", task: ["matrix"] },
    { name: "promises", task: ["promises"] },
    { name: "grpcurl", task: ["grpcurl"] },
    { name: "gRPC peers", task: ["interop:grpc"] },
    { name: "kube-apiserver", task: ["kube"] },
    { name: "etcd", task: ["etcd"] },
    { name: "the service proxy", task: ["proxy-real"] },
    { name: "discovery", task: ["xds"] },
    { name: "Konnectivity's suite", task: ["suite", ...Deno.args] },
  ], tally);
  Deno.exit(tally.end());
}
