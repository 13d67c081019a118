/**
 * A folder for one run: certificates, sockets and logs. It goes away with the
 * run unless something failed, when the logs are worth keeping.
 *
 * @module
 */

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
    // Short: a unix socket's path has 107 octets at most.
    const folder = await Deno.makeTempDir({ prefix: "tunnel-" });
    return new Workspace(folder, await makeCertificates(folder));
  }

  /** A path in the folder that was not handed out before. */
  path(name: string): string {
    return `${this.folder}/${++this.#files}-${name}`;
  }

  async remove(): Promise<void> {
    await Deno.remove(this.folder, { recursive: true });
  }
}

async function makeCertificates(folder: string): Promise<Certificates> {
  const openssl = (...args: string[]) => run("openssl", args, folder);
  const newKey = (name: string) =>
    openssl(
      ...["genpkey", "-quiet", "-algorithm", "EC"],
      ...["-pkeyopt", "ec_paramgen_curve:P-256", "-out", `${name}.key`],
    );
  await newKey("ca");
  await openssl(
    ...["req", "-x509", "-new", "-key", "ca.key", "-subj", "/CN=test-ca"],
    ...["-days", "30", "-addext", "basicConstraints=critical,CA:TRUE"],
    ...["-addext", "keyUsage=critical,keyCertSign,cRLSign", "-out", "ca.crt"],
  );
  const issue = async (name: string, usage: string): Promise<KeyPair> => {
    await newKey(name);
    const request = ["-key", `${name}.key`, "-subj", `/CN=${name}`];
    await openssl("req", "-new", ...request, "-out", `${name}.csr`);
    await Deno.writeTextFile(
      `${folder}/${name}.ext`,
      "subjectAltName=DNS:localhost,IP:127.0.0.1,IP:::1\n" +
        `extendedKeyUsage=${usage}\nkeyUsage=critical,digitalSignature\n`,
    );
    await openssl(
      ...["x509", "-req", "-in", `${name}.csr`, "-CA", "ca.crt"],
      ...["-CAkey", "ca.key", "-CAcreateserial", "-days", "30"],
      ...["-extfile", `${name}.ext`, "-out", `${name}.crt`],
    );
    return { cert: `${folder}/${name}.crt`, key: `${folder}/${name}.key` };
  };
  return {
    ca: `${folder}/ca.crt`,
    server: await issue("server", "serverAuth,clientAuth"),
    agent: await issue("agent", "clientAuth"),
    client: await issue("client", "clientAuth"),
  };
}

async function run(
  program: string,
  args: readonly string[],
  cwd: string,
): Promise<void> {
  const command = new Deno.Command(program, { args: [...args], cwd });
  const { success, stderr } = await command.output();
  if (success) return;
  const said = new TextDecoder().decode(stderr).trim();
  throw new Error(`Cannot run ${program} ${args[0]}: ${said}`);
}
