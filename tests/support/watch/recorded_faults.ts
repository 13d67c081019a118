/**
 * Slips that a test provokes in `proto`, and reads as a process would.
 *
 * @module
 */

import { setFaultReporter } from "../../../proto/sync/faults.ts";

/** See the module description. Until it is disposed of. */
export class RecordedFaults implements Disposable {
  /** Such as `stream: a slip`, oldest first. */
  readonly faults: string[] = [];

  constructor() {
    setFaultReporter((where, error) => {
      const message = error instanceof Error ? error.message : String(error);
      this.faults.push(`${where}: ${message}`);
    });
  }

  [Symbol.dispose](): void {
    setFaultReporter((_where, error) => {
      throw error;
    });
  }
}

/** A handler with a slip. */
export function slip(): never {
  throw new Error("a slip");
}
