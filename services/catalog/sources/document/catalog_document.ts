/**
 * Services and endpoints as people write them down, in YAML or JSON: the format
 * of the file source and of what the HTTP source fetches. Described, with an
 * example, in docs/services.md.
 *
 * A document is taken whole or not at all; what is wrong with it is said with
 * line numbers.
 *
 * Reading order: `readCatalogDocument`, then `readService`, `readEndpoint`.
 *
 * @module
 */

import type { Code } from "../../../../proto/codes/codes.ts";
import {
  DocumentError,
  parseYamlOrJson,
  withLine,
} from "../../../../platform/documents/document.ts";
import {
  keyOf,
  type Service,
  type ServiceEndpoints,
} from "../../model/model.ts";
import { ENDPOINTS_MAX, SERVICES_MAX } from "../../model/validate.ts";
import {
  DocumentMap,
  type DocumentPath,
  FieldError,
} from "../../../../platform/documents/document_map.ts";
import { readService } from "./document_service.ts";

/** 20,000 services with 10 endpoints each, written out, are half of it. */
export const DOCUMENT_BYTES_MAX = 64 * 1024 * 1024;

/** Problems that are named before the rest is only counted. */
const PROBLEMS_NAMED_MAX = 5;

/** A document that cannot be used; the message is for people. */
export class CatalogDocumentError extends Error {
  override readonly name = "CatalogDocumentError";
  readonly tunnelCode: Code = "TUN124";
}

/** What a document says. */
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
  const value = parse(text);
  const problems: FieldError[] = [];
  const document = readDocument(value, (problem) => problems.push(problem));
  if (problems.length === 0) return document;
  const texts = problems.slice(0, PROBLEMS_NAMED_MAX)
    .map((problem) => withLine(text, problem));
  const rest = problems.length - texts.length;
  if (rest > 0) texts.push(`and ${rest} more problems`);
  throw new CatalogDocumentError(texts.join("; "));
}

/** All that is wrong with a document that was parsed. */
export function catalogProblems(value: unknown): readonly FieldError[] {
  const problems: FieldError[] = [];
  readDocument(value, (problem) => problems.push(problem));
  return problems;
}

function parse(text: string): unknown {
  try {
    return parseYamlOrJson(text);
  } catch (error) {
    if (!(error instanceof DocumentError)) throw error;
    throw new CatalogDocumentError(error.message);
  }
}

/** Says each problem; what is returned counts only if there was none. */
function readDocument(
  value: unknown,
  onProblem: (problem: FieldError) => void,
): CatalogDocument {
  const services: Service[] = [];
  const endpoints: ServiceEndpoints[] = [];
  const trying = (read: () => void) => {
    try {
      read();
    } catch (error) {
      if (!(error instanceof FieldError)) throw error;
      onProblem(error);
    }
  };
  trying(() => {
    const fields = new DocumentMap(value, [], ["services"]);
    if (!fields.has("services") || !Array.isArray(fields.value("services"))) {
      throw new FieldError([], "wanted a list of services; [] for none");
    }
    const items = fields.list("services");
    if (items.length > SERVICES_MAX) {
      fields.refuse("services", `${items.length}; at most ${SERVICES_MAX}`);
    }
    const places = new Map<string, DocumentPath>();
    let endpointCount = 0;
    for (const [item, place] of items) {
      trying(() => {
        const { service, behind } = readService(item, place);
        const key = keyOf(service);
        if (places.has(key)) {
          throw new FieldError(place, `${key} is there twice`);
        }
        places.set(key, place);
        endpointCount += behind?.length ?? 0;
        // One list can stand in many places by YAML's aliases.
        if (endpointCount > ENDPOINTS_MAX) {
          fields.refuse("services", `more than ${ENDPOINTS_MAX} endpoints`);
        }
        services.push(service);
        if (behind !== undefined) {
          endpoints.push({ service: key, endpoints: behind });
        }
      });
      if (endpointCount > ENDPOINTS_MAX) break;
    }
  });
  return { services, endpoints };
}
