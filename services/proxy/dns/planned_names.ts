/**
 * Where services would be served, without serving them.
 *
 * @module
 */

import { Catalog } from "../../catalog/catalog.ts";
import { keyOf, type Protocol } from "../../catalog/model/model.ts";
import type { Snapshot } from "../../catalog/snapshot.ts";
import type { Source } from "../../catalog/model/source.ts";
import type { ListenAddress } from "../../../net/listen/listeners.ts";
import type { Log } from "../../../platform/log/log.ts";
import { within } from "../../../platform/time/deadline.ts";
import { systemTimers } from "../../../platform/time/system_timers.ts";
import { ReservedNumbers } from "../addresses/reserved_numbers.ts";
import {
  LocalAddressBook,
  type LocalAddresses,
} from "../addresses/local_address.ts";
import type { LocalName } from "./local_names.ts";
import { inOrderOfPlacing, portKey } from "../listeners/proxied_port.ts";

/** The input of a plan. */
export interface PlanOptions {
  readonly sources: readonly Source[];
  readonly addresses: LocalAddresses;
  /** The earlier addresses; nothing is written. */
  readonly addressFile?: { readonly numbers: ReservedNumbers } | undefined;
}

/** How long sources have to deliver their first state. */
export const PLAN_TIMEOUT_MS = 10_000;

/** A source said nothing in time. */
class PlanError extends Error {
  override readonly name = "PlanError";
}

/**
 * Asks the sources once, and finds the same addresses as a proxy that starts
 * now.
 *
 * @throws {PlanError} When a source has not delivered its state.
 */
export async function plannedNames(
  plan: PlanOptions,
  log: Log,
): Promise<readonly LocalName[]> {
  const catalog = new Catalog({
    sources: plan.sources,
    log,
    timers: systemTimers,
    random: Math.random,
  });
  catalog.start();
  try {
    await within({
      timers: systemTimers,
      timeoutMs: PLAN_TIMEOUT_MS,
      late: () => tooLate(catalog),
    }, catalog.whenSynced());
    return plannedAddresses(catalog.snapshot, plan).flatMap((
      { service, name, address },
    ) => address === undefined ? [] : [{ service, port: name, address }]);
  } finally {
    await catalog.stop();
  }
}

function tooLate({ status }: Catalog): PlanError {
  const missing = status
    .filter(({ isSynced }) => !isSynced)
    .map(({ name, problem = "no answer" }) => `${name}: ${problem}`);
  return new PlanError(
    `Cannot list services: nothing is known after ` +
      `${PLAN_TIMEOUT_MS / 1_000} s of ${missing.join("; ")}`,
  );
}

/** One port of a service, and where it would be. */
export interface PlannedAddress {
  readonly key: string;
  readonly service: string;
  /** Of the port. */
  readonly name: string;
  readonly protocol: Protocol;
  /** Absent: there is no room. */
  readonly address: ListenAddress | undefined;
}

/**
 * Every port, in the order of the catalog; the order of choice is the proxy's.
 */
export function plannedAddresses(
  { services }: Pick<Snapshot, "services">,
  { addresses, addressFile }: Omit<PlanOptions, "sources">,
): readonly PlannedAddress[] {
  const kept = new ReservedNumbers(addressFile?.numbers.all);
  const book = new LocalAddressBook(addresses, kept);
  const ports = [...services.values()].flatMap((service) =>
    service.ports.map((servicePort) => ({
      key: portKey(keyOf(service), servicePort.name),
      service: keyOf(service),
      servicePort,
      isAnnounced: service.announced === true,
    }))
  );
  for (const port of inOrderOfPlacing(ports)) book.place(port);
  return ports.map((port) => {
    const { name, protocol } = port.servicePort;
    const { key, service } = port;
    return { key, service, name, protocol, address: book.place(port) };
  });
}
