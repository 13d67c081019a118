/**
 * `@std/streams`, fetched from npm because JSR is not reachable where this is built.
 * To swap for the original: change the one line in `deno.json`, delete this file.
 *
 * @module
 */
// @ts-types="./streams.d.ts"
export {
  TextLineStream,
  toBytes,
  toText,
} from "npm:deno-std@1.4.0/streams/mod.js";
