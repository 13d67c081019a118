/**
 * The routes of a port as people write them down; see docs/services.md.
 *
 * @module
 */

import { DEFAULT_WEIGHT } from "../../model/model.ts";
import {
  type HeaderMatch,
  type Route,
  ROUTE_WEIGHT_MAX,
  type RouteTarget,
} from "../../model/routes.ts";
import {
  DocumentMap,
  type DocumentPath,
  kindOfValue,
} from "../../../../platform/documents/document_map.ts";

/**
 * What stands under `routes` of a port.
 *
 * @param namespace Of the service: that of targets that do not say.
 * @returns `undefined`: nothing does.
 * @throws {FieldError}
 */
export function readRoutes(
  port: DocumentMap,
  namespace: string,
): readonly Route[] | undefined {
  if (!port.has("routes")) return undefined;
  return port.list("routes")
    .map(([item, place]) => readRoute(item, place, namespace));
}

function readRoute(
  value: unknown,
  place: DocumentPath,
  namespace: string,
): Route {
  const fields = new DocumentMap(value, place, [
    "host",
    "prefix",
    "headers",
    "to",
  ]);
  const host = fields.text("host")?.toLowerCase();
  const headers = readHeaders(fields);
  if (!fields.has("to")) {
    fields.refuse("to", "wanted a list of {service: NAME, port: PORT}");
  }
  return {
    ...host === undefined ? {} : { host },
    prefix: fields.text("prefix") ?? "/",
    ...headers.length === 0 ? {} : { headers },
    to: fields.list("to").map(([item, at]) => readTarget(item, at, namespace)),
  };
}

function readHeaders(route: DocumentMap): readonly HeaderMatch[] {
  const value = route.value("headers");
  if (value === undefined) return [];
  if (typeof value !== "object" || Array.isArray(value)) {
    route.refuse("headers", `saw ${kindOfValue(value)}, wanted {NAME: VALUE}`);
  }
  const names = Object.keys(value as object);
  const headers = route.map("headers", names)!;
  return names.map((name) => ({
    name: name.toLowerCase(),
    value: headers.text(name) ?? headers.refuse(name, "wanted a text"),
  }));
}

function readTarget(
  value: unknown,
  place: DocumentPath,
  namespace: string,
): RouteTarget {
  const fields = new DocumentMap(value, place, ["service", "port", "weight"]);
  const service = fields.text("service") ??
    fields.refuse("service", "wanted NAME or NAMESPACE/NAME");
  return {
    service: service.includes("/") ? service : `${namespace}/${service}`,
    port: fields.number("port", 1, 65_535) ??
      fields.refuse("port", "wanted a number"),
    weight: fields.number("weight", 1, ROUTE_WEIGHT_MAX) ?? DEFAULT_WEIGHT,
  };
}
