/**
 * Everything that needs a real peer: the matrix, the promises, upstream's suite,
 * grpcurl, the gRPC peers, a Kubernetes API server, etcd, real programs through
 * the service proxy, and clients of discovery. Ends with `N passed, N failed, N skipped`.
 *
 * Usage: `deno task lab interop [--strict]`; strict as in `suite.ts`.
 *
 * @module
 */

import { runSteps } from "./run_steps.ts";
import { Tally } from "../../tests/support/watch/tally.ts";

if (import.meta.main) {
  const tally = new Tally();
  await runSteps([
    { name: "matrix", task: ["lab", "matrix"] },
    { name: "promises", task: ["lab", "promises"] },
    { name: "grpcurl", task: ["lab", "grpcurl"] },
    { name: "gRPC peers", task: ["lab", "grpc"] },
    { name: "kube-apiserver", task: ["lab", "kube"] },
    { name: "etcd", task: ["lab", "etcd"] },
    { name: "the service proxy", task: ["lab", "proxy"] },
    { name: "discovery", task: ["lab", "xds"] },
    { name: "Konnectivity's suite", task: ["lab", "suite", ...Deno.args] },
  ], tally);
  Deno.exit(tally.end());
}
