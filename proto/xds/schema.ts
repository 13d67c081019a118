/**
 * All texts of xDS together, as types to be looked up by name.
 *
 * Layer: xDS. The texts are read at first use, for most commands never speak xDS.
 *
 * @module
 */

import protobuf from "protobufjs";
import { CLUSTER_PROTOS } from "./messages/cluster_messages.ts";
import { CORE_PROTOS } from "./messages/core_messages.ts";
import { DISCOVERY_PROTO } from "./messages/discovery_messages.ts";
import { ENDPOINT_PROTO } from "./messages/endpoint_messages.ts";
import { GOOGLE_PROTOS } from "./messages/google_messages.ts";
import { LISTENER_PROTOS } from "./messages/listener_messages.ts";
import { ROUTE_PROTOS } from "./messages/route_messages.ts";

/** What stands before a message's full name in an `Any`. */
export const TYPE_URL_PREFIX = "type.googleapis.com/";

/** All texts; together they are complete. */
export const XDS_PROTOS: readonly string[] = [
  ...GOOGLE_PROTOS,
  ...CORE_PROTOS,
  ENDPOINT_PROTO,
  ...CLUSTER_PROTOS,
  ...ROUTE_PROTOS,
  ...LISTENER_PROTOS,
  DISCOVERY_PROTO,
];

let root: protobuf.Root | undefined;

/** Types that were looked up: protobufjs walks through all packages each time. */
const typesByUrl = new Map<string, protobuf.Type>();
const typesByName = new Map<string, protobuf.Type>();

/**
 * The type of a message.
 *
 * @param name Such as `google.protobuf.Any`.
 * @throws {Error} When no text has it.
 */
export function xdsType(name: string): protobuf.Type {
  let type = typesByName.get(name);
  if (type === undefined) {
    typesByName.set(name, type = xdsRoot().lookupType(name));
  }
  return type;
}

/** Of a type URL; `undefined` when no text has it. */
export function typeOfUrl(typeUrl: string): protobuf.Type | undefined {
  const known = typesByUrl.get(typeUrl);
  if (known !== undefined) return known;
  const name = typeUrl.slice(TYPE_URL_PREFIX.length);
  const found = typeUrl.startsWith(TYPE_URL_PREFIX)
    ? xdsRoot().lookup(name)
    : null;
  if (!(found instanceof protobuf.Type)) return undefined;
  typesByUrl.set(typeUrl, found);
  return found;
}

function xdsRoot(): protobuf.Root {
  if (root === undefined) {
    root = new protobuf.Root();
    for (const text of XDS_PROTOS) protobuf.parse(text, root);
    root.resolveAll();
  }
  return root;
}
