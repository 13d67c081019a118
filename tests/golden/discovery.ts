// deno-lint-ignore-file no-console -- a command that says what it wrote.
/**
 * All that each kind of client is told of one catalog, as text: a change of the
 * generator shows in its diff what becomes of clients.
 *
 * `discovery_test.ts` compares. After a change that is meant:
 *
 * ```
 * deno run --allow-read --allow-write tests/golden/discovery.ts --update
 * ```
 *
 * @module
 */

import type { Snapshot } from "../../services/catalog/snapshot.ts";
import { keyOf, SEES_EVERYTHING } from "../../services/catalog/model/model.ts";
import { readCatalogDocument } from "../../services/catalog/sources/document/catalog_document.ts";
import { type Resource, RESOURCE_KINDS } from "../../proto/xds/resource.ts";
import {
  type ClientGroup,
  clientGroup,
} from "../../services/discovery/generate/client_group.ts";
import { generateService } from "../../services/discovery/generate/generate_service.ts";
import { Views } from "../../services/discovery/generate/views.ts";
import { resourceJson } from "../support/xds/resource_data.ts";
import { unservedNow, viewNow } from "../support/xds/views_now.ts";

const FOLDER = new URL("./discovery/", import.meta.url);

const CONNECT = { host: "127.0.0.1", port: 3128 };

/** By file. */
export const GOLDEN_AUDIENCES: Readonly<Record<string, ClientGroup>> = {
  "grpc.json": clientGroup("grpc", SEES_EVERYTHING),
  "grpc_connect.json": clientGroup("grpc", SEES_EVERYTHING, {
    connectProxy: CONNECT,
  }),
  "envoy.json": clientGroup("envoy", SEES_EVERYTHING, { zone: "a" }),
  "envoy_connect.json": clientGroup("envoy", SEES_EVERYTHING, {
    connectProxy: CONNECT,
  }),
  "service.json": clientGroup("service", SEES_EVERYTHING),
  "rules_grpc.txt": clientGroup("grpc", SEES_EVERYTHING, { zone: "a" }),
  "rules_envoy.txt": clientGroup("envoy", SEES_EVERYTHING, { zone: "a" }),
};

/** Files that say no more than what is other than in another one. */
const BESIDE: Readonly<Record<string, string>> = {
  "grpc_connect.json": "grpc.json",
  "envoy_connect.json": "envoy.json",
};

/** Where a golden file is. */
export function goldenFile(name: string): URL {
  return new URL(name, FOLDER);
}

/** Views of the catalog that a golden file is made of. */
export async function goldenViews(name: string): Promise<Views> {
  const catalog = name.startsWith("rules") ? "rules.yaml" : "catalog.yaml";
  const text = await Deno.readTextFile(goldenFile(catalog));
  const { services, endpoints } = readCatalogDocument(text);
  const snapshot: Snapshot = {
    version: 1,
    services: new Map(services.map((service) => [keyOf(service), service])),
    endpoints: new Map(
      endpoints.map(({ service, endpoints }) => [service, endpoints]),
    ),
  };
  const views = new Views(generateService);
  views.update(snapshot);
  return views;
}

/** All resources of a group, each kind in the order of names. */
export function goldenResources(views: Views, of: ClientGroup): Resource[] {
  const { resources } = viewNow(views, of);
  return RESOURCE_KINDS.flatMap((kind) =>
    [...resources[kind].values()].sort((a, b) => a.name < b.name ? -1 : 1)
  );
}

/** The text of a resource by its kind and name. */
function textsOf(views: Views, of: ClientGroup): ReadonlyMap<string, string> {
  return new Map(
    goldenResources(views, of).map(({ kind, name, version, any }) => {
      const resource = { kind, name, version, message: resourceJson(any) };
      return [`${kind} ${name}`, JSON.stringify(resource)];
    }),
  );
}

/** What a golden file says; of the many rules a resource is a line. */
export async function goldenText(name: string): Promise<string> {
  const views = await goldenViews(name);
  const of = GOLDEN_AUDIENCES[name]!;
  const unserved = unservedNow(views, of);
  if (!name.endsWith(".json")) {
    return [
      ...unserved.map(({ service, reason }) => `${service} ${reason}\n`),
      ...goldenResources(views, of).map(({ kind, any }) =>
        `${kind} ${JSON.stringify(resourceJson(any))}\n`
      ),
    ].join("");
  }
  const texts = textsOf(views, of);
  const beside = BESIDE[name];
  const others = beside === undefined
    ? undefined
    : textsOf(views, GOLDEN_AUDIENCES[beside]!);
  const missing = others && [...others.keys()].filter((key) => !texts.has(key));
  const resources = [...texts].filter(([key, text]) =>
    others?.get(key) !== text
  )
    .map(([, text]) => JSON.parse(text));
  const text = { beside, missing, unserved, resources };
  return `${JSON.stringify(text, null, 1)}\n`;
}

if (import.meta.main) {
  if (Deno.args.length !== 1 || Deno.args[0] !== "--update") {
    console.error("Cannot write golden files without --update");
    Deno.exit(2);
  }
  for (const name of Object.keys(GOLDEN_AUDIENCES)) {
    await Deno.writeTextFile(goldenFile(name), await goldenText(name));
    console.log(`wrote ${name}`);
  }
}
