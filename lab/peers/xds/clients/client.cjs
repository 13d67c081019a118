// deno-lint-ignore-file no-console -- prints for whoever started it.
// grpc-js over xds:///NAME, under Node: see README.md.
//   NODE_PATH=.../node_modules node client.cjs TARGET
"use strict";

const grpc = require("@grpc/grpc-js");
const { register } = require("@grpc/grpc-js-xds");

const WINDOW = 8;
const PAUSE_MS = 5;
const TIMEOUT_MS = 5_000;

register();
const client = new grpc.Client(
  process.argv[2],
  grpc.credentials.createInsecure(),
);
const same = (octets) => octets;

/** @returns The backend's name, or what went wrong. */
function call() {
  return new Promise((resolve) => {
    let backend;
    const path = "/grpc.health.v1.Health/Check";
    const options = { deadline: Date.now() + TIMEOUT_MS };
    client.makeUnaryRequest(
      ...[path, same, same, Buffer.alloc(0), new grpc.Metadata(), options],
      (error) => resolve(error ? { error } : { backend }),
    ).on("metadata", (header) => {
      backend = String(header.get("backend")[0]);
    });
  });
}

let isOver = false;
process.on("SIGTERM", () => isOver = true);

async function main() {
  let [calls, failed, said] = [0, 0, undefined];
  while (!isOver) {
    const who = new Set();
    for (let at = 0; at < WINDOW; at++, calls++) {
      const { backend, error } = await call();
      if (error) {
        failed++;
        console.log(`error ${error.code} ${error.details}`);
      } else who.add(backend);
      await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
    }
    const now = [...who].sort().join(" ");
    if (now !== said) console.log(`backends ${now}`);
    said = now;
  }
  console.log(`done ${calls} ${failed}`);
  process.exit(0);
}

main();
