/**
 * Which keys of etcd mean what: the seam between the source, which knows keys
 * and revisions, and those who know what is written in them.
 *
 * @module
 */

import type { Code } from "../../../../proto/codes/codes.ts";
import type { Endpoint, Service } from "../../model/model.ts";

/** A key or a value that says nothing; the message is for people. */
export class LayoutError extends Error {
  override readonly name = "LayoutError";
  readonly tunnelCode: Code = "TUN124";
}

/** What a key is about. */
export interface ParsedKey {
  readonly kind: "service" | "endpoints";
  /** `namespace/name`. */
  readonly service: string;
  /** Of several keys with endpoints of one service: which. */
  readonly part: string;
}

export interface EtcdLayout {
  /** What a source of it is called. */
  readonly sourceName: string;
  /** What all of its keys begin with; ends with `/`. */
  readonly prefix: string;
  /** @throws {LayoutError} When the key is none of this layout. */
  placeOf(key: string): ParsedKey;
  /** @throws {LayoutError} */
  readService(key: string, place: ParsedKey, text: string): Service;
  /**
   * @param of The service, when it is known.
   * @param refuse Called for each endpoint that is omitted.
   * @throws {LayoutError}
   */
  readEndpoints(
    key: string,
    text: string,
    of: Service | undefined,
    refuse: (problem: string) => void,
  ): readonly Endpoint[];
}

/**
 * A value as JSON's object.
 *
 * @throws {LayoutError}
 */
export function parseObject(
  text: string,
): Readonly<Record<string, unknown>> {
  // What Kubernetes has written since 1.6.
  if (text.startsWith("k8s\0")) {
    throw new LayoutError(
      "it is Kubernetes' protobuf, wanted JSON; take services from its API " +
        "server",
    );
  }
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    // The parser's words are about a character; the value is what is wrong.
    throw new LayoutError("it is no JSON");
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw new LayoutError("wanted a JSON object");
  }
  return value as Readonly<Record<string, unknown>>;
}
