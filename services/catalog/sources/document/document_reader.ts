/**
 * Reads one document after the other, of which the next says nearly the same as
 * the last.
 *
 * A service whose text is what it was is the object that it was, and so is an
 * endpoint that says what it said. That is faster, here and for whoever looks for
 * differences, and it makes no garbage: ten documents of a thousand services once
 * left 75 MB of it for the collector to find.
 *
 * @module
 */

import {
  DocumentError,
  parseJson,
  parseYaml,
} from "../../../../platform/documents/document.ts";
import { FieldError } from "../../../../platform/documents/document_map.ts";
import { keyOf } from "../../model/model.ts";
import { isSame } from "../../model/plain_data.ts";
import { ENDPOINTS_MAX, SERVICES_MAX } from "../../model/validate.ts";
import {
  type CatalogDocument,
  readCatalogDocument,
} from "./catalog_document.ts";
import { type CutDocument, cutDocument } from "./document_cut.ts";
import { type ReadService, readService } from "./document_service.ts";

export class DocumentReader {
  /** By its text. */
  #known: ReadonlyMap<string, ReadService> = new Map();

  /**
   * As {@linkcode readCatalogDocument}, which is also asked for the truth of all
   * that is wrong or unusual.
   *
   * @throws {CatalogDocumentError}
   */
  read(text: string): CatalogDocument {
    const cut = cutDocument(text);
    const document = cut === undefined ? undefined : this.#readCut(cut);
    if (document !== undefined) return document;
    const whole = readCatalogDocument(text);
    this.#known = new Map();
    return whole;
  }

  /** @returns `undefined`: it cannot be read service by service. */
  #readCut({ language, services }: CutDocument): CatalogDocument | undefined {
    if (services.length > SERVICES_MAX) return undefined;
    // With texts of this document: each holds all of the one that it is cut from.
    const known = new Map<string, ReadService>();
    const fresh: string[] = [];
    const keys = new Set<string>();
    let endpointCount = 0;
    for (const text of services) {
      let reading = this.#known.get(text);
      if (reading === undefined) {
        reading = readOne(text, language);
        if (reading === undefined) return undefined;
        fresh.push(text);
      }
      known.set(text, reading);
      keys.add(keyOf(reading.service));
      endpointCount += reading.behind?.length ?? 0;
    }
    const isTwice = keys.size < services.length;
    if (isTwice || endpointCount > ENDPOINTS_MAX) return undefined;
    this.#share(known, fresh);
    this.#known = known;
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

  /** A service with another text says most of what it said. */
  #share(
    readings: Map<string, ReadService>,
    fresh: readonly string[],
  ): void {
    if (fresh.length === 0 || this.#known.size === 0) return;
    const before = new Map(
      [...this.#known.values()].map((each) => [keyOf(each.service), each]),
    );
    for (const text of fresh) {
      const now = readings.get(text)!;
      const old = before.get(keyOf(now.service));
      if (old !== undefined) readings.set(text, shared(now, old));
    }
  }
}

/** `now`, with the objects of `old` that say the same. */
function shared(now: ReadService, old: ReadService): ReadService {
  const service = isSame(old.service, now.service) ? old.service : now.service;
  if (now.behind === undefined || old.behind === undefined) {
    return { ...now, service };
  }
  const byAddress = new Map(old.behind.map((each) => [each.address, each]));
  const behind = now.behind.map((endpoint) => {
    const was = byAddress.get(endpoint.address);
    return was !== undefined && isSame(was, endpoint) ? was : endpoint;
  });
  return { service, behind };
}

/** @returns `undefined`: it is not as it must be, or not on its own. */
function readOne(
  text: string,
  language: CutDocument["language"],
): ReadService | undefined {
  try {
    const value = language === "json" ? parseJson(text) : parseItem(text);
    return value === undefined ? undefined : readService(value, []);
  } catch (error) {
    if (error instanceof DocumentError || error instanceof FieldError) {
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
