/**
 * Reads one document after the other, of which the next says nearly the same as
 * the last.
 *
 * A service whose text is what it was is the object that it was. That is faster,
 * and it makes no garbage: ten documents of a thousand services once left 75 MB
 * of it for the collector to find.
 *
 * @module
 */

import { parse as parseYaml } from "@std/yaml";
import { type Endpoint, keyOf, type Service } from "../model.ts";
import { ENDPOINTS_MAX, SERVICES_MAX } from "../validate.ts";
import {
  type CatalogDocument,
  readCatalogDocument,
} from "./catalog_document.ts";
import { type CutDocument, cutDocument } from "./document_cut.ts";
import { FieldError } from "./document_fields.ts";
import { readService } from "./document_service.ts";

/** One service as it was read. */
interface Reading {
  readonly service: Service;
  readonly behind: readonly Endpoint[];
}

/** See the module description. */
export class DocumentReader {
  /** By its text. */
  #known: ReadonlyMap<string, Reading> = new Map();

  /**
   * As {@linkcode readCatalogDocument}, which is also asked for the truth of all
   * that is wrong or unusual.
   *
   * @throws {CatalogDocumentError}
   */
  async read(text: string): Promise<CatalogDocument> {
    const cut = cutDocument(text);
    const document = cut === undefined ? undefined : this.#readCut(cut);
    if (document !== undefined) return document;
    const whole = await readCatalogDocument(text);
    this.#known = new Map();
    return whole;
  }

  /** @returns `undefined`: it cannot be read piece by piece. */
  #readCut({ language, services }: CutDocument): CatalogDocument | undefined {
    if (services.length > SERVICES_MAX) return undefined;
    // With texts of this document: each holds all of the one that it is cut from.
    const known = new Map<string, Reading>();
    const keys = new Set<string>();
    let endpointCount = 0;
    for (const text of services) {
      const reading = this.#known.get(text) ?? readOne(text, language);
      if (reading === undefined) return undefined;
      known.set(text, reading);
      keys.add(keyOf(reading.service));
      endpointCount += reading.behind.length;
    }
    const isTwice = keys.size < services.length;
    if (isTwice || endpointCount > ENDPOINTS_MAX) return undefined;
    this.#known = known;
    const readings = [...known.values()];
    return {
      services: readings.map(({ service }) => service),
      endpoints: readings.map(({ service, behind }) => ({
        service: keyOf(service),
        endpoints: behind,
      })),
    };
  }
}

/** @returns `undefined`: it is not as it must be, or not on its own. */
function readOne(
  text: string,
  language: CutDocument["language"],
): Reading | undefined {
  try {
    const value = language === "json" ? JSON.parse(text) : parseItem(text);
    return value === undefined ? undefined : readService(value, []);
  } catch (error) {
    if (error instanceof SyntaxError || error instanceof FieldError) {
      return undefined;
    }
    throw error;
  }
}

function parseItem(text: string): unknown {
  // A copy: what is read holds pieces of the text, and a piece of a document
  // that was cut off holds the document.
  const copy = new TextDecoder().decode(new TextEncoder().encode(text));
  const list = parseYaml(copy);
  return Array.isArray(list) && list.length === 1 ? list[0] : undefined;
}
