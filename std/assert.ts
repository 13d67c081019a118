/**
 * `@std/assert`, fetched from npm because JSR is not reachable where this is built.
 * To swap for the original: change the one line in `deno.json`, delete this file.
 *
 * @module
 */
// @ts-types="./assert.d.ts"
export {
  assert,
  assertEquals,
  assertExists,
  assertInstanceOf,
  assertMatch,
  assertNotEquals,
  assertRejects,
  assertStrictEquals,
  assertStringIncludes,
  assertThrows,
} from "npm:deno-std@1.4.0/assert/mod.js";
