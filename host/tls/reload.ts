/**
 * Reloading credentials when somebody asks (SIGHUP), and saying what came of it.
 *
 * @module
 */

import type { Log } from "../log.ts";
import { type Credentials, CredentialsError } from "./credentials.ts";

/** Reads all of `credentials` again; those that cannot be read stay in use. */
export function reloadAll(
  credentials: readonly Credentials[],
  log: Log,
): void {
  for (const holder of credentials) {
    try {
      const hasChanged = holder.reload();
      log.info(
        hasChanged
          ? "certificates reloaded: the next handshakes use them"
          : "certificates read again: they have not changed",
      );
      for (const warning of holder.warnings) log.warn(warning);
    } catch (error) {
      if (!(error instanceof CredentialsError)) throw error;
      log.error(`${error.message}; the ones in use stay`);
    }
  }
}
