/**
 * What a release is made of, as SPDX 2.3: the runtime, and the libraries of which
 * something is in the bundle.
 *
 * @module
 */

import { VERSION } from "../platform/process/version.ts";
import type { Modules } from "./bundle.ts";
import { type Dependency, lockedPackages } from "./licences.ts";
import { type Platform, RUNTIME_PINS } from "./runtime_pins.ts";

/** How `bundle.ts` notes where a module is from. */
const FROM_LIBRARY =
  /^(?:\/\/ | *")npm\/((?:@[^/\s]+\/)?[^/\s]+)\/([^/\s]+)\//gm;

/**
 * @param seconds When the sources were made.
 * @throws {Error} When a library of the bundle is not in `deno.lock`.
 */
export async function sbomOf(
  platform: Platform,
  modules: Modules,
  seconds: number,
): Promise<string> {
  const runtime = RUNTIME_PINS[platform];
  const parts: readonly Dependency[] = [
    { ...runtime, licence: "MIT" },
    ...inBundle(modules, await lockedPackages()),
  ];
  const name = `tunnel-${VERSION}-${runtime.label}`;
  const document = {
    spdxVersion: "SPDX-2.3",
    dataLicense: "CC0-1.0",
    SPDXID: "SPDXRef-DOCUMENT",
    name,
    documentNamespace: `https://spdx.org/spdxdocs/${name}`,
    creationInfo: {
      created: new Date(seconds * 1000).toISOString().replace(".000", ""),
      creators: ["Tool: tunnel-release"],
    },
    packages: [
      { ...packageOf("tunnel", VERSION, "Apache-2.0") },
      ...parts.map((part) => ({
        ...packageOf(part.name, part.version, part.licence),
        checksums: [{
          algorithm: "SHA512",
          checksumValue: hexOf(part.integrity),
        }],
        externalRefs: [{
          referenceCategory: "PACKAGE-MANAGER",
          referenceType: "purl",
          referenceLocator: `pkg:npm/${
            part.name.replace("@", "%40")
          }@${part.version}`,
        }],
      })),
    ],
    relationships: [
      {
        spdxElementId: "SPDXRef-DOCUMENT",
        relationshipType: "DESCRIBES",
        relatedSpdxElement: idOf("tunnel", VERSION),
      },
      ...parts.map((part) => ({
        spdxElementId: idOf("tunnel", VERSION),
        relationshipType: "CONTAINS",
        relatedSpdxElement: idOf(part.name, part.version),
      })),
    ],
  };
  return `${JSON.stringify(document, null, 2)}\n`;
}

/** Those of which there is a module, by name. */
export function inBundle(
  modules: Modules,
  locked: readonly Dependency[],
): readonly Dependency[] {
  const names = new Set(
    [...modules.values()].flatMap((text) =>
      [...text.matchAll(FROM_LIBRARY)].map(([, name, version]) =>
        `${name}@${version}`
      )
    ),
  );
  return [...names].sort().map((name) => {
    const found = locked.find((one) => `${one.name}@${one.version}` === name);
    if (found !== undefined) return found;
    throw new Error(`Cannot say what ${name} is: deno.lock does not have it`);
  });
}

function packageOf(name: string, versionInfo: string, licence: string) {
  return {
    SPDXID: idOf(name, versionInfo),
    name,
    versionInfo,
    downloadLocation: "NOASSERTION",
    filesAnalyzed: false,
    licenseConcluded: licence,
    licenseDeclared: licence,
    copyrightText: "NOASSERTION",
  };
}

/** SPDX allows letters, digits, dots and dashes. */
function idOf(name: string, version: string): string {
  return `SPDXRef-${`${name}-${version}`.replaceAll(/[^0-9A-Za-z.-]/g, "-")}`;
}

function hexOf(integrity: string): string {
  const base64 = integrity.slice(integrity.indexOf("-") + 1);
  return Uint8Array.fromBase64(base64).toHex();
}
