/**
 * The platform's HTTP client for one API server, made anew when a certificate
 * changes: the platform cannot change those of one that exists.
 *
 * @module
 */

import { KubernetesConfigError } from "./errors.ts";

/** What a client is made of. */
export interface HttpClientMaterial {
  /** PEM; absent: public roots. */
  readonly authority: string | undefined;
  readonly keyPair: { readonly cert: string; readonly key: string } | undefined;
  readonly proxyUrl: string | undefined;
}

/** A client, and how many requests are on their way out through it. */
interface Pooled {
  readonly material: HttpClientMaterial;
  readonly client: Deno.HttpClient;
  uses: number;
}

/** See the module description. */
export class HttpClients implements Disposable {
  #current: Pooled | undefined;

  /**
   * Does something with the client for `material`. Bodies that are still read
   * afterwards are not cut when their client goes.
   *
   * @throws {KubernetesConfigError} When the platform cannot use `material`.
   */
  async use<T>(
    material: HttpClientMaterial,
    action: (client: Deno.HttpClient) => Promise<T>,
  ): Promise<T> {
    const pooled = this.#clientFor(material);
    pooled.uses++;
    try {
      return await action(pooled.client);
    } finally {
      pooled.uses--;
      if (pooled !== this.#current) closeIfUnused(pooled);
    }
  }

  /** The next request makes a connection of its own: this one may be dead. */
  renew(): void {
    const old = this.#current;
    this.#current = undefined;
    if (old !== undefined) closeIfUnused(old);
  }

  [Symbol.dispose](): void {
    this.renew();
  }

  #clientFor(material: HttpClientMaterial): Pooled {
    const current = this.#current;
    if (current !== undefined && isSame(current.material, material)) {
      return current;
    }
    const client = create(material);
    this.renew();
    return this.#current = { material, client, uses: 0 };
  }
}

function closeIfUnused(pooled: Pooled): void {
  if (pooled.uses === 0) pooled.client.close();
}

function create(material: HttpClientMaterial): Deno.HttpClient {
  const { authority, keyPair, proxyUrl } = material;
  try {
    return Deno.createHttpClient({
      ...(authority === undefined ? {} : { caCerts: [authority] }),
      ...(keyPair === undefined
        ? {}
        : { cert: keyPair.cert, key: keyPair.key }),
      ...(proxyUrl === undefined ? {} : { proxy: { url: proxyUrl } }),
    });
  } catch (error) {
    throw new KubernetesConfigError(
      "Cannot use the CA, certificate or key for the API server: " +
        `${(error as Error).message}; take them from their source again`,
      { cause: error },
    );
  }
}

function isSame(a: HttpClientMaterial, b: HttpClientMaterial): boolean {
  return a.authority === b.authority && a.proxyUrl === b.proxyUrl &&
    a.keyPair?.cert === b.keyPair?.cert && a.keyPair?.key === b.keyPair?.key;
}
