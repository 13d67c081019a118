/**
 * Services and endpoints as people write them down, in YAML or JSON: the format
 * of the file source and of what the HTTP source fetches. Described, with an
 * example, in docs/services.md.
 *
 * A document is taken whole or not at all; errors are reported with line
 * numbers.
 *
 * @module
 */

import type { Code } from "../../../../proto/codes/codes.ts";
import {
  DocumentError,
  parseYamlOrJson,
} from "../../../../platform/documents/document.ts";
import { positionsIn } from "../../../../platform/documents/yaml.ts";
import {
  keyOf,
  type Service,
  type ServiceEndpoints,
} from "../../model/model.ts";
import { SERVICES_MAX } from "../../model/validate.ts";
import {
  as,
  list,
  map,
  readAll,
  type Shape,
} from "../../../../platform/documents/shape.ts";
import { SERVICE } from "./service_shape.ts";

/** 20,000 services with 10 endpoints each, written out, are half of it. */
export const DOCUMENT_BYTES_MAX = 64 * 1024 * 1024;

/** Problems that are named before the rest is only counted. */
const PROBLEMS_NAMED_MAX = 5;

/** A document that cannot be used; the message is for people. */
export class CatalogDocumentError extends Error {
  override readonly name = "CatalogDocumentError";
  readonly tunnelCode: Code = "TUN124";
}

/** The content of a document. */
export interface CatalogDocument {
  readonly services: readonly Service[];
  readonly endpoints: readonly ServiceEndpoints[];
}

/**
 * Reads a document. An empty one, or one without `services`, is refused: that
 * is what a file looks like while it is written.
 *
 * @throws {CatalogDocumentError} With lines, such as `line 7: services[0].port:
 *   there is no such field …`.
 */
export function readCatalogDocument(text: string): CatalogDocument {
  const { read, problems } = readAll(SERVICES, parse(text));
  if (problems.length === 0) return read!;
  const positionOf = positionsIn(text);
  const texts = problems.slice(0, PROBLEMS_NAMED_MAX)
    .map(({ place, message }) => `line ${positionOf(place).line}: ${message}`);
  const rest = problems.length - texts.length;
  if (rest > 0) texts.push(`and ${rest} more problems`);
  throw new CatalogDocumentError(texts.join("; "));
}

function parse(text: string): unknown {
  try {
    return parseYamlOrJson(text);
  } catch (error) {
    if (!(error instanceof DocumentError)) throw error;
    throw new CatalogDocumentError(error.message);
  }
}

/** A document of services: what an editor, a check and a source read it by. */
export const SERVICES: Shape<CatalogDocument> = as(
  map({ services: list(SERVICE, { most: SERVICES_MAX }) }, {
    required: { services: "wanted a list of services; [] for none" },
  }),
  ({ services }, at) => {
    const keys = new Set<string>();
    for (const [index, { service }] of services.entries()) {
      const key = keyOf(service);
      if (keys.has(key)) at.say(`${key} is there twice`, "services", index);
      keys.add(key);
    }
    return {
      services: services.map(({ service }) => service),
      endpoints: services.flatMap(({ service, behind }) =>
        behind === undefined
          ? []
          : [{ service: keyOf(service), endpoints: behind }]
      ),
    };
  },
);
