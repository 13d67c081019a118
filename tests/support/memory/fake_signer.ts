/**
 * The people behind CertificateSigningRequests of a fake API server: one who
 * decides and one who signs, when a test says so.
 *
 * @module
 */

import type {
  CertificateSigningRequest,
  KubernetesObject,
} from "../../../neighbours/kubernetes/objects.ts";
import {
  CERTIFICATE_SIGNING_REQUESTS,
  objectPathOf,
} from "../../../neighbours/kubernetes/paths.ts";
import { CertificateAuthority } from "../../../platform/pki/authority.ts";
import { readNamedRequest } from "../../../platform/pki/named_request.ts";
import type { FakeApiServer } from "../peers/fake_apiserver.ts";

/** Where requests are. */
export const REQUESTS = objectPathOf(CERTIFICATE_SIGNING_REQUESTS);

/** See the module description. */
export class FakeSigner {
  private constructor(
    readonly authority: CertificateAuthority,
    readonly server: FakeApiServer,
  ) {}

  static async of(server: FakeApiServer): Promise<FakeSigner> {
    const authority = await CertificateAuthority.create({
      commonName: () => "kubernetes",
      notAfter: new Date(Date.now() + 24 * 3600_000),
    });
    return new FakeSigner(authority, server);
  }

  /** The request of that name as it is now. */
  find(name: string): CertificateSigningRequest {
    return this.server.find(`${REQUESTS}/${name}`) as CertificateSigningRequest;
  }

  /** Writes a condition, and whatever else the status is to have. */
  decide(name: string, type: string, certificate?: string): void {
    const found = this.find(name);
    const condition = { type, status: "True", reason: "Test", message: "why" };
    const status = {
      conditions: [...found.status?.conditions ?? [], condition],
      ...(certificate === undefined ? {} : { certificate }),
    };
    this.server.put(REQUESTS, { ...found, status } as KubernetesObject);
  }

  /** What a signer makes of a request, as it stands in `status`. */
  async sign(name: string, notAfterMs: number): Promise<string> {
    const { spec } = this.find(name);
    const wanted = await readNamedRequest(atob(spec.request));
    return btoa(
      await this.authority.issue({
        publicKey: wanted.publicKey,
        commonName: wanted.commonName,
        organizations: wanted.organizations,
        names: [
          ...wanted.dnsNames.map((value) => ({ type: "dns" as const, value })),
          ...wanted.ipAddresses.map((value) => ({
            type: "ip" as const,
            value,
          })),
        ],
        usage: "client",
        notAfter: new Date(notAfterMs),
      }),
    );
  }

  /** Approves and signs. */
  async grant(
    name: string,
    notAfterMs = Date.now() + 3600_000,
  ): Promise<void> {
    this.decide(name, "Approved", await this.sign(name, notAfterMs));
  }
}
