/**
 * Flags of the admin port for other machines.
 *
 * @module
 */

import type { GivenValues } from "../flags/read_flags.ts";
import type { AdminRemoteOptions } from "../../server/options.ts";
import { flag, type FlagValues, inGroup } from "../flags/flag.ts";
import { keyPair, refuseFlags, UsageError } from "../flags/usage_error.ts";
import { given } from "../../platform/documents/given.ts";
import { listenAt } from "../flags/addresses.ts";

/** In the order in which the help shows them. */
export const ADMIN_REMOTE_FLAGS = inGroup(
  "Admin API for other machines (docs/observability.md)",
  {
    "admin-remote-port": flag.port(0, {
      help:
        "Port on which people elsewhere ask by certificate, over HTTPS, what " +
        "`admins` of --policy-file lets them; 0 picks a free one.",
      defaultText: "none",
    }),
    "admin-remote-bind-address": flag.word("ADDRESS", {
      help: "Address of that port.",
      defaultText: "all interfaces",
    }),
    "admin-client-ca-file": flag.file({
      help: "CA of the certificates that must be shown there.",
    }),
  },
);

/** Its own flags, and those of the server that replace missing ones. */
type Flags =
  & FlagValues<typeof ADMIN_REMOTE_FLAGS>
  & {
    readonly [Name in "server-cert" | "server-key" | "policy-file"]: string;
  };

/**
 * Combines and checks; absent: no such port is wanted.
 *
 * @throws {UsageError} One line.
 */
export function adminRemoteOptions(
  { values: flags, given: named }: GivenValues<Flags>,
): AdminRemoteOptions | undefined {
  const clientCaFile = flags["admin-client-ca-file"];
  if (!named.has("admin-remote-port")) {
    refuseFlags(
      Object.keys(ADMIN_REMOTE_FLAGS),
      (name) => named.has(name),
      "without --admin-remote-port: it is about that port; add it",
    );
    return undefined;
  }
  const missing = clientCaFile === ""
    ? "--admin-client-ca-file: its clients show a certificate of that CA"
    : flags["policy-file"] === ""
    ? "--policy-file: only its admins may ask there"
    : undefined;
  if (missing !== undefined) {
    throw new UsageError(
      `Cannot use --admin-remote-port without ${missing}; add it`,
    );
  }
  return given({
    address: listenAt(flags, "admin-remote-bind-address", "admin-remote-port"),
    keyPair: keyPair(flags, "server-cert", "server-key"),
    clientCaFile,
  });
}
