/**
 * Where services would be served, without serving them.
 *
 * @module
 */

import { unawaited } from "../../host/process/internal_errors.ts";
import { Catalog } from "../../catalog/catalog.ts";
import { keyOf } from "../../catalog/model.ts";
import type { Source } from "../../catalog/source.ts";
import type { Log } from "../../host/process/log.ts";
import { systemTimers } from "../../host/process/system_timers.ts";
import { KeptNumbers } from "./kept_numbers.ts";
import { LocalAddressBook, type LocalAddresses } from "./local_address.ts";
import type { LocalName } from "./local_names.ts";
import { inOrderOfPlacing, portKey } from "./proxied_port.ts";

/** What has to be known. */
export interface PlanOptions {
  readonly sources: readonly Source[];
  readonly addresses: LocalAddresses;
  /** Where they were; nothing is written. */
  readonly addressFile?: { readonly numbers: KeptNumbers };
}

/** Sources are given this long to say what there is. */
export const PLAN_TIMEOUT_MS = 10_000;

/** A source said nothing in time. */
export class PlanError extends Error {
  override readonly name = "PlanError";
}

/**
 * Asks the sources once, and finds the places as a proxy does that starts now.
 *
 * @throws {PlanError} When not every source has said what there is.
 */
export async function plannedNames(
  { sources, addresses, addressFile }: PlanOptions,
  log: Log,
): Promise<readonly LocalName[]> {
  const catalog = new Catalog({
    sources,
    log,
    timers: systemTimers,
    random: Math.random,
  });
  catalog.start();
  try {
    await orTooLate(catalog);
    const kept = new KeptNumbers(addressFile?.numbers.all);
    return namesIn(catalog, new LocalAddressBook(addresses, kept));
  } finally {
    await catalog.stop();
  }
}

function namesIn(
  { snapshot }: Catalog,
  book: LocalAddressBook,
): readonly LocalName[] {
  const ports = [...snapshot.services.values()].flatMap((service) =>
    service.ports.map((servicePort) => ({
      key: portKey(keyOf(service), servicePort.name),
      service: keyOf(service),
      servicePort,
      isAnnounced: service.announced === true,
    }))
  );
  for (const port of inOrderOfPlacing(ports)) book.place(port);
  return ports.flatMap((port) => {
    const address = book.place(port);
    if (address === undefined) return [];
    return [{ service: port.service, port: port.servicePort.name, address }];
  });
}

function orTooLate(catalog: Catalog): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = systemTimers.after(PLAN_TIMEOUT_MS, () => {
      const missing = catalog.status
        .filter(({ isSynced }) => !isSynced)
        .map(({ name, problem = "no answer" }) => `${name}: ${problem}`);
      reject(
        new PlanError(
          `Cannot list services: nothing is known after ` +
            `${PLAN_TIMEOUT_MS / 1_000} s of ${missing.join("; ")}`,
        ),
      );
    });
    const synced = catalog.whenSynced().then(() => {
      timer.cancel();
      resolve();
    });
    unawaited("catalog", synced);
  });
}
