/**
 * `@std/yaml`, fetched from npm because JSR is not reachable where this is built.
 * To swap for the original: export it from "jsr:@std/yaml" here. The client
 * library imports this file by its path, because who imports the library from
 * another project does not have our import map.
 *
 * @module
 */
// @ts-types="./yaml.d.ts"
export { parse, stringify } from "npm:deno-std@1.4.0/yaml/mod.js";
