/**
 * Where services are, in forms that programs read already: environment variables
 * as Kubernetes sets them, and lines of `/etc/hosts`.
 *
 * @module
 */

import { DEFAULT_NAMESPACE } from "../../catalog/model/model.ts";

/** The domain of services in the DNS listener. */
export const SERVICE_DOMAIN = "svc.tunnel";

/** One port of a service, and where it is. */
export interface LocalName {
  /** `namespace/name`. */
  readonly service: string;
  /** The port's; empty for the only one. */
  readonly port: string;
  readonly address: { readonly hostname: string; readonly port: number };
}

/**
 * `WEB_SERVICE_HOST`, `WEB_SERVICE_PORT` and, where ports have names,
 * `WEB_SERVICE_PORT_HTTP`, a line each. Services of other namespaces than
 * `default` have theirs as prefix: `SHOP_WEB_SERVICE_HOST`. When two services
 * give the same name, the one in `default` gets it, or else the first by name.
 *
 * @param leftOut Is told, a line each, of services that get none.
 */
export function environmentText(
  names: readonly LocalName[],
  leftOut: (line: string) => void,
): string {
  const lines = new Map<string, string>();
  const set = (variable: string, value: string | number) => {
    if (!lines.has(variable)) lines.set(variable, `${variable}=${value}\n`);
  };
  const owners = new Map<string, string>();
  const problems = new Set<string>();
  for (const { service, port, address } of inOrder(names)) {
    const { namespace, name } = partsOf(service);
    const whole = namespace === DEFAULT_NAMESPACE
      ? name
      : `${namespace}_${name}`;
    const prefix = `${variablePart(whole)}_SERVICE`;
    const owner = owners.get(prefix) ?? service;
    owners.set(prefix, owner);
    const problem = /^[0-9]/.test(prefix)
      ? "no name may begin with a digit"
      : owner === service
      ? undefined
      : `${prefix}_HOST is of ${owner}`;
    if (problem !== undefined) {
      problems.add(`${service} has no variables: ${problem}`);
      continue;
    }
    set(`${prefix}_HOST`, address.hostname);
    set(`${prefix}_PORT`, address.port);
    if (port !== "") {
      set(`${prefix}_PORT_${variablePart(port)}`, address.port);
    }
  }
  for (const problem of problems) leftOut(problem);
  return [...lines.values()].join("");
}

/**
 * `127.100.3.7 web.default.svc.tunnel web.default web`, a line for each
 * service; the shortest form only for those of `default`.
 *
 * The file has no ports, so it helps only when each service has an address of
 * its own.
 */
export function hostsText(names: readonly LocalName[]): string {
  const lines = new Map<string, string>();
  for (const { service, address } of inOrder(names)) {
    const { namespace, name } = partsOf(service);
    const line = `${address.hostname} ${name}.${namespace}.${SERVICE_DOMAIN} ` +
      `${name}.${namespace}${
        namespace === DEFAULT_NAMESPACE ? ` ${name}` : ""
      }`;
    // Ports that a service wants elsewhere are more than one line.
    lines.set(line, `${line}\n`);
  }
  return [...lines.values()].join("");
}

function inOrder(names: readonly LocalName[]): readonly LocalName[] {
  const rank = ({ service }: LocalName) =>
    partsOf(service).namespace === DEFAULT_NAMESPACE ? 0 : 1;
  return [...names].sort((one, other) =>
    rank(one) - rank(other) || (one.service < other.service ? -1 : 1)
  );
}

function partsOf(service: string): { namespace: string; name: string } {
  const [namespace = "", name = ""] = service.split("/");
  return { namespace, name };
}

function variablePart(text: string): string {
  return text.toUpperCase().replaceAll(/[^A-Z0-9]/g, "_");
}
