/**
 * What we make of services, read and written with the published texts of xDS: it
 * stays the same to the byte, so nothing in it is unknown, and nothing is where
 * others would not look for it.
 */

import { assert, assertEquals } from "@std/assert";
import protobuf from "protobufjs";
import {
  GOLDEN_AUDIENCES,
  goldenResources,
  goldenViews,
} from "../../tests/golden/discovery.ts";
import { publishedRoot } from "./published_xds.ts";

const PREFIX = "type.googleapis.com/";

/** As protobufjs, which brings this type, spells it. */
interface AnyMessage {
  readonly type_url: string;
  /** Absent where the message is empty. */
  readonly value?: Uint8Array;
}

Deno.test("others read our resources as we wrote them", async () => {
  const root = await publishedRoot();
  // What node proxies of ours are sent is no type of others.
  const own = new URL("../../proto/xds/service.proto", import.meta.url);
  protobuf.parse(await Deno.readTextFile(own), root, { keepCase: true });
  const anyType = root.lookupType("google.protobuf.Any");
  let count = 0;
  const check = (bytes: Uint8Array, path: string): void => {
    const { type_url: typeUrl, value = new Uint8Array(0) } = anyType.toObject(
      anyType.decode(bytes),
    ) as AnyMessage;
    const type = root.lookupType(typeUrl.slice(PREFIX.length));
    const message = type.decode(value);
    assertEquals(type.encode(message).finish().toHex(), value.toHex(), path);
    count++;
    for (const [inner, at] of anysIn(message, path)) check(inner, at);
  };
  const anysIn = function* (
    value: unknown,
    path: string,
  ): Generator<readonly [Uint8Array, string]> {
    if (typeof value !== "object" || value === null) return;
    if (value instanceof Uint8Array) return;
    if (value instanceof protobuf.Message && value.$type === anyType) {
      yield [anyType.encode(value).finish(), path];
      return;
    }
    for (const [key, inner] of Object.entries(value)) {
      yield* anysIn(inner, `${path}.${key}`);
    }
  };
  for (const [file, audience] of Object.entries(GOLDEN_AUDIENCES)) {
    const views = await goldenViews(file);
    for (const { kind, name, any } of goldenResources(views, audience)) {
      check(any, `${file}: ${kind} ${name}`);
    }
  }
  // Listeners have filters, and those have filters: they were found as well.
  assert(count > 150, `only ${count} messages`);
});
