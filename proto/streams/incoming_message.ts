/**
 * The order and the length of what a peer sends on one stream: 1xx responses,
 * the head, the body, the trailers (RFC 9113 §8.1).
 *
 * It decides the kind of each header section, and checks the body against
 * content-length. A mistake is returned as a clause, from which the caller
 * makes the error. It knows neither states nor windows.
 *
 * @module
 */

import type { HeaderField } from "../hpack/header_field.ts";
import { checkSection, type SectionFacts } from "./header_sections.ts";

/** The kind of a header section, or its fault. */
export type IncomingSection =
  | { readonly kind: "informational" | "head" | "trailers" }
  | { readonly kind: "malformed"; readonly problem: string };

const HEAD: IncomingSection = { kind: "head" };

export class IncomingMessage {
  #hasHead = false;
  /** Bytes of body still to come by content-length, if that is known. */
  #bodyBytesLeft: number | undefined;
  #isHeadRequest = false;

  /** The final head came: a body may follow. */
  get hasHead(): boolean {
    return this.#hasHead;
  }

  /** Client role: what the answer belongs to. */
  answers(request: readonly HeaderField[]): void {
    this.#isHeadRequest = request.some(({ name, value }) =>
      name === ":method" && value === "HEAD"
    );
  }

  /** Server role: the request's head, whose section was checked before. */
  request(facts: SectionFacts, endStream: boolean): IncomingSection {
    return this.#head(facts.contentLength, endStream);
  }

  /** Any section but a request's head. */
  section(
    fields: readonly HeaderField[],
    endStream: boolean,
  ): IncomingSection {
    return this.#hasHead
      ? this.#trailers(fields, endStream)
      : this.#response(fields, endStream);
  }

  /**
   * A piece of the body.
   *
   * @returns What is wrong with the length, if anything (§8.1.1).
   */
  body(bytes: number, endStream: boolean): string | undefined {
    if (this.#bodyBytesLeft === undefined) return undefined;
    this.#bodyBytesLeft -= bytes;
    return this.#bodyBytesLeft < 0 || endStream
      ? this.#problemOfLength()
      : undefined;
  }

  #response(
    fields: readonly HeaderField[],
    endStream: boolean,
  ): IncomingSection {
    const check = checkSection("response", fields);
    if (!check.ok) return malformed(check.problem);
    const { status, contentLength } = check.facts;
    if (status < 200) {
      return endStream
        ? malformed("a 1xx response ends the stream")
        : { kind: "informational" };
    }
    // These have no content, whatever content-length they state (RFC 9110
    // §8.6).
    const hasNoBody = this.#isHeadRequest || status === 204 || status === 304;
    return this.#head(hasNoBody ? undefined : contentLength, endStream);
  }

  #head(
    contentLength: number | undefined,
    endStream: boolean,
  ): IncomingSection {
    this.#hasHead = true;
    this.#bodyBytesLeft = contentLength;
    const problem = endStream ? this.#problemOfLength() : undefined;
    return problem === undefined ? HEAD : malformed(problem);
  }

  #trailers(
    fields: readonly HeaderField[],
    endStream: boolean,
  ): IncomingSection {
    const check = checkSection("trailers", fields);
    if (!check.ok) return malformed(check.problem);
    if (!endStream) return malformed("trailers do not end the stream");
    const problem = this.#problemOfLength();
    return problem === undefined ? { kind: "trailers" } : malformed(problem);
  }

  #problemOfLength(): string | undefined {
    const left = this.#bodyBytesLeft ?? 0;
    if (left === 0) return undefined;
    return left > 0
      ? `the body ends ${left} bytes before its content-length`
      : `the body goes ${-left} bytes beyond its content-length`;
  }
}

function malformed(problem: string): IncomingSection {
  return { kind: "malformed", problem };
}
