/**
 * `@std/yaml`, fetched from npm because JSR is not reachable where this is built.
 * To swap for the original: change the one line in `deno.json`, delete this file.
 *
 * @module
 */
// @ts-types="./yaml.d.ts"
export { parse, stringify } from "deno-std/yaml/mod.js";
