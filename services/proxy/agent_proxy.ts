/**
 * The service proxy of an agent: services out of a file, on loopback.
 *
 * @module
 */

import type { Source } from "../catalog/model/source.ts";
import { FileSource } from "../catalog/sources/file.ts";
import { systemTimers } from "../../platform/time/system_timers.ts";
import { openAddressFile } from "./addresses/address_file.ts";
import { PROXY_DEFAULTS } from "./defaults.ts";
import type { Program } from "../../net/program/program.ts";
import { ServiceProxy } from "./service_proxy.ts";

/**
 * @param configFile Of services; read now, and again whenever it changes.
 * @throws {SourceUnusableError}
 */
export async function agentServices(configFile: string): Promise<Source> {
  const source = new FileSource({ path: configFile, timers: systemTimers });
  await source.prepare();
  return source;
}

/**
 * @param source Its start is the proxy's.
 * @param addressPath Where it is kept where services are; absent: nowhere.
 */
export function openAgentProxy(
  source: Source,
  addressPath: string | undefined,
  program: Program,
  changed: () => void,
): ServiceProxy {
  const addressFile = addressPath === undefined
    ? undefined
    : openAddressFile(addressPath, PROXY_DEFAULTS.addresses, program);
  return new ServiceProxy(
    {
      ...PROXY_DEFAULTS,
      ...(addressFile === undefined ? {} : { addressFile }),
      sources: [source],
    },
    program,
    changed,
  );
}
