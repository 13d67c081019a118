/**
 * The test certificates as files, for whatever reads them from there.
 *
 * @module
 */

import { certificates } from "./certificates.ts";

/** Paths, as a client's flags name them. */
export interface ClientFiles {
  readonly caFile: string;
  readonly certFile: string;
  readonly keyFile: string;
}

/** See the module description. Removes its folder when disposed of. */
export class CertificateFiles implements Disposable {
  readonly client: ClientFiles;

  private constructor(private readonly directory: string) {
    this.client = {
      caFile: `${directory}/ca.crt`,
      certFile: `${directory}/client.crt`,
      keyFile: `${directory}/client.key`,
    };
  }

  static async write(): Promise<CertificateFiles> {
    const { ca, client } = await certificates();
    const files = new CertificateFiles(await Deno.makeTempDir());
    await Deno.writeTextFile(files.client.caFile, ca);
    await Deno.writeTextFile(files.client.certFile, client.cert);
    await Deno.writeTextFile(files.client.keyFile, client.key);
    return files;
  }

  [Symbol.dispose](): void {
    Deno.removeSync(this.directory, { recursive: true });
  }
}
