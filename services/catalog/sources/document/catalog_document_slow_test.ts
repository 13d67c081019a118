import { assertThrows } from "@std/assert";
import {
  CatalogDocumentError,
  readCatalogDocument,
} from "./catalog_document.ts";

Deno.test("aliases of YAML cannot make a document larger than it may be", () => {
  const endpoints = "{address: 10.0.0.1}, ".repeat(1_000);
  const services = Array.from(
    { length: 201 },
    (_, i) => `- {name: s${i}, ports: [{port: 80}], endpoints: *all}`,
  );
  const first =
    `- {name: s, ports: [{port: 80}], endpoints: &all [${endpoints}]}`;
  assertThrows(
    () =>
      readCatalogDocument(`services:\n${[first, ...services].join("\n")}\n`),
    CatalogDocumentError,
    "more than 200000 endpoints",
  );
});
