/**
 * Reads one document after the other, of which the next says nearly the same as
 * the last.
 *
 * A service whose text is what it was is the object that it was. That is faster,
 * and it makes no garbage: ten documents of a thousand services once left 75 MB
 * of it for the collector to find. Of a large service in JSON the same goes for
 * its endpoints.
 *
 * @module
 */

import { parse as parseYaml } from "@std/yaml";
import { type Endpoint, keyOf } from "../../model/model.ts";
import {
  checkEndpoints,
  ENDPOINTS_MAX,
  ENDPOINTS_PER_SERVICE_MAX,
  SERVICES_MAX,
} from "../../model/validate.ts";
import {
  type CatalogDocument,
  readCatalogDocument,
} from "./catalog_document.ts";
import { type CutDocument, cutDocument } from "./document_cut.ts";
import { readEndpoint } from "./document_endpoint.ts";
import { FieldError } from "./document_fields.ts";
import { type ReadService, readService } from "./document_service.ts";
import { type CutService, cutService } from "./service_cut.ts";

/**
 * Services with longer texts are read endpoint by endpoint: some fifty of them.
 * Characters.
 */
export const LARGE_LENGTH_MIN = 4_096;

/** One service as it was read. */
interface Reading extends ReadService {
  /** Of a large one. */
  readonly pieces?: Pieces;
}

/** A large service, piece by piece. */
interface Pieces {
  /** The text without endpoints. */
  readonly around: string;
  /** By their texts. */
  readonly endpoints: ReadonlyMap<string, Endpoint>;
}

/** See the module description. */
export class DocumentReader {
  /** By its text. */
  #known: ReadonlyMap<string, Reading> = new Map();
  /** Those of them that are large, by the text around their endpoints. */
  #large: ReadonlyMap<string, Reading> = new Map();

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
    this.#large = new Map();
    return whole;
  }

  /** @returns `undefined`: it cannot be read piece by piece. */
  #readCut({ language, services }: CutDocument): CatalogDocument | undefined {
    if (services.length > SERVICES_MAX) return undefined;
    // With texts of this document: each holds all of the one that it is cut from.
    const known = new Map<string, Reading>();
    const large = new Map<string, Reading>();
    const keys = new Set<string>();
    let endpointCount = 0;
    for (const text of services) {
      const reading = this.#known.get(text) ?? this.#readOne(text, language);
      if (reading === undefined) return undefined;
      known.set(text, reading);
      if (reading.pieces !== undefined) {
        large.set(reading.pieces.around, reading);
      }
      keys.add(keyOf(reading.service));
      endpointCount += reading.behind?.length ?? 0;
    }
    const isTwice = keys.size < services.length;
    if (isTwice || endpointCount > ENDPOINTS_MAX) return undefined;
    this.#known = known;
    this.#large = large;
    const readings = [...known.values()];
    return {
      services: readings.map(({ service }) => service),
      endpoints: readings.flatMap(({ service, behind }) =>
        behind === undefined
          ? []
          : [{ service: keyOf(service), endpoints: behind }]
      ),
    };
  }

  /** @returns `undefined`: it is not as it must be, or not on its own. */
  #readOne(
    text: string,
    language: CutDocument["language"],
  ): Reading | undefined {
    const isLarge = language === "json" && text.length >= LARGE_LENGTH_MIN;
    const cut = isLarge ? cutService(text) : undefined;
    try {
      if (cut !== undefined) return this.#readPieces(cut);
      const value = language === "json" ? JSON.parse(text) : parseItem(text);
      return value === undefined ? undefined : readService(value, []);
    } catch (error) {
      if (error instanceof SyntaxError || error instanceof FieldError) {
        return undefined;
      }
      throw error;
    }
  }

  /** @throws {SyntaxError | FieldError} */
  #readPieces({ around, endpoints: texts }: CutService): Reading | undefined {
    if (texts.length > ENDPOINTS_PER_SERVICE_MAX) return undefined;
    const before = this.#large.get(around);
    // What an endpoint says can depend on its service's ports.
    const service = before?.service ??
      readService(JSON.parse(around), []).service;
    const known = before?.pieces?.endpoints;
    const endpoints = new Map<string, Endpoint>();
    const fresh: Endpoint[] = [];
    const behind = texts.map((text) => {
      let endpoint = known?.get(text);
      if (endpoint === undefined) {
        endpoint = readEndpoint(JSON.parse(text), [], service.ports);
        fresh.push(endpoint);
      }
      endpoints.set(text, endpoint);
      return endpoint;
    });
    const problem = checkEndpoints({
      service: keyOf(service),
      endpoints: fresh,
    });
    return problem === undefined
      ? { service, behind, pieces: { around, endpoints } }
      : undefined;
  }
}

function parseItem(text: string): unknown {
  // A copy: what is read holds pieces of the text, and a piece of a document
  // that was cut off holds the document.
  const copy = new TextDecoder().decode(new TextEncoder().encode(text));
  const list = parseYaml(copy);
  return Array.isArray(list) && list.length === 1 ? list[0] : undefined;
}
