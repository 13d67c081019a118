/**
 * A folder for one run: certificates, sockets and logs. It goes away with the
 * run unless something failed, when the logs are worth keeping.
 *
 * @module
 */

import {
  type CertificateSpec,
  ThrowawayCa,
} from "../certificates/throwaway_ca.ts";

/** Paths of a throw-away CA and of what it has signed. */
export interface Certificates {
  readonly ca: string;
  readonly server: KeyPair;
  readonly agent: KeyPair;
  readonly client: KeyPair;
}

export interface KeyPair {
  readonly cert: string;
  readonly key: string;
}

/** See the module description. */
export class Workspace {
  #files = 0;

  private constructor(
    readonly folder: string,
    readonly certificates: Certificates,
  ) {}

  static async make(): Promise<Workspace> {
    // Short: a unix socket's path has 107 bytes at most.
    const folder = await Deno.makeTempDir({ prefix: "tunnel-" });
    return new Workspace(folder, await makeCertificates(folder));
  }

  /** A path in the folder that was not handed out before. */
  path(name: string): string {
    return `${this.folder}/${++this.#files}-${name}`;
  }

  async remove(): Promise<void> {
    // Workers whose parent was killed write down what they know, and end.
    for (let left = 50; left > 0; left--) {
      try {
        return await Deno.remove(this.folder, { recursive: true });
      } catch (error) {
        if ((error as { code?: string }).code !== "ENOTEMPTY") throw error;
      }
      await new Promise((again) => setTimeout(again, 100));
    }
    await Deno.remove(this.folder, { recursive: true });
  }
}

async function makeCertificates(folder: string): Promise<Certificates> {
  const authority = await ThrowawayCa.create();
  const issue = async (
    commonName: string,
    usage: CertificateSpec["usage"],
  ): Promise<KeyPair> => {
    // The last is the server's end of the emulated line in lab/bench/lines.
    const names = ["localhost", "127.0.0.1", "::1", "10.99.0.1"];
    const pair = await authority.issue({ commonName, usage, names });
    const files = {
      cert: `${folder}/${commonName}.crt`,
      key: `${folder}/${commonName}.key`,
    };
    await Deno.writeTextFile(files.cert, pair.cert);
    await Deno.writeTextFile(files.key, pair.key, { mode: 0o600 });
    return files;
  };
  const ca = `${folder}/ca.crt`;
  await Deno.writeTextFile(ca, authority.cert);
  return {
    ca,
    server: await issue("server", "both"),
    agent: await issue("agent", "client"),
    client: await issue("client", "client"),
  };
}
