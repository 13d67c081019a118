/**
 * The HTTP client for one API server, replaced when a certificate changes.
 *
 * @module
 */

import { messageOf } from "../../platform/errors/error_code.ts";
import { createPrivateKey, X509Certificate } from "node:crypto";
import { HttpClient } from "../../net/channel/http_client.ts";
import { NeighbourConfigError } from "../tls_files.ts";

/** The parts of a client. */
export interface HttpClientMaterial {
  /** PEM; absent: public authorities. */
  readonly authority: string | undefined;
  readonly keyPair: { readonly cert: string; readonly key: string } | undefined;
  readonly proxyUrl: string | undefined;
}

export class HttpClients implements Disposable {
  #current:
    | { readonly material: HttpClientMaterial; readonly client: HttpClient }
    | undefined;

  /**
   * The client for `material`. What a client before it has been asked is still
   * answered.
   *
   * @throws {NeighbourConfigError} When `material` cannot be used.
   */
  of(material: HttpClientMaterial): HttpClient {
    const current = this.#current;
    if (current !== undefined && isSame(current.material, material)) {
      return current.client;
    }
    const client = create(material);
    this.renew();
    this.#current = { material, client };
    return client;
  }

  /** The next request makes a new connection: this one may be dead. */
  renew(): void {
    this.#current?.client[Symbol.dispose]();
    this.#current = undefined;
  }

  [Symbol.dispose](): void {
    this.renew();
  }
}

function create(material: HttpClientMaterial): HttpClient {
  const { authority = "", keyPair, proxyUrl } = material;
  const { cert, key } = keyPair ?? { cert: "", key: "" };
  try {
    if (authority !== "") void new X509Certificate(authority);
    if (cert !== "") void new X509Certificate(cert);
    if (key !== "") void createPrivateKey(key);
  } catch (error) {
    throw new NeighbourConfigError(
      "Cannot use the CA, certificate or key for the API server: " +
        `${messageOf(error)}; take them from their source again`,
      { cause: error },
    );
  }
  return new HttpClient({
    credentials: { ca: authority, cert, key },
    proxyUrl,
  });
}

function isSame(a: HttpClientMaterial, b: HttpClientMaterial): boolean {
  return a.authority === b.authority && a.proxyUrl === b.proxyUrl &&
    a.keyPair?.cert === b.keyPair?.cert && a.keyPair?.key === b.keyPair?.key;
}
