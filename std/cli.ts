/**
 * `@std/cli`, fetched from npm because JSR is not reachable where this is built.
 * To swap for the original: change the one line in `deno.json`, delete this file.
 *
 * @module
 */
// @ts-types="./cli.d.ts"
export { parseArgs } from "npm:deno-std@1.4.0/cli/parse_args.js";
