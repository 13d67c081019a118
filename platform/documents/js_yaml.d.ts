/** The part of `js-yaml` that this project uses, typed after its documentation. */

/** How far the reader is. */
export interface State {
  readonly position: number;
  readonly line: number;
  readonly lineStart: number;
  /** Of the node that has just been read. */
  readonly kind: "scalar" | "sequence" | "mapping" | null;
  readonly result: unknown;
}

/** @throws {YAMLException} When `text` is not YAML. */
export function load(text: string, options?: {
  /** Of keys that come twice the last counts, as in JSON. */
  readonly json?: boolean;
  readonly listener?: (event: "open" | "close", state: State) => void;
}): unknown;

export function dump(value: unknown): string;

export class YAMLException extends Error {
  readonly reason: string;
  /** Counted from 0; absent where all of the text is meant. */
  readonly mark?: { readonly line: number; readonly column: number };
}
