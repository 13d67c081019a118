import { assertEquals } from "@std/assert";
import { certificates } from "../../../tests/support/certificates/certificates.ts";
import { TLS_ENGINES } from "../../../tests/support/rigs/tls_engines.ts";
import { TlsServer } from "../../../tests/support/peers/tls_server.ts";

const here = (path: string) =>
  JSON.stringify(new URL(path, import.meta.url).href);

/** Connects to the port it is given, without naming any authority. */
const KNOCK = `
const { connectTls } = await import(${here("../../dial/server_connect.ts")});
const [port, tls] = Deno.args;
try {
  await connectTls({
    host: "localhost",
    ip: "127.0.0.1",
    port: +port,
    credentials: { cert: "", key: "", ca: "" },
    alpn: ["h2"],
    proxyEnv: {},
    timeoutMs: 10_000,
    tls,
  }).then((stream) => stream.close());
  console.log("trusted");
} catch (error) {
  console.log(error.failure);
}`;

for (const engine of TLS_ENGINES) {
  Deno.test(`a client without a CA of its own trusts whom the platform trusts, ${engine.name}`, async () => {
    const { ca } = await certificates();
    const folder = await Deno.makeTempDir();
    const roots = `${folder}/roots.pem`;
    await Deno.writeTextFile(roots, ca);
    await Deno.writeTextFile(`${folder}/knock.ts`, KNOCK);
    await using server = await TlsServer.open(
      engine,
      (socket) => socket.close(),
      { clientCertificate: "none" },
    );
    const config = new URL("../../../deno.json", import.meta.url).pathname;
    const knock = async (env: Record<string, string>) =>
      new TextDecoder().decode(
        (await new Deno.Command(Deno.execPath(), {
          args: ["run", "--quiet", "-A", "--config", config]
            .concat(`${folder}/knock.ts`, `${server.port}`, engine.tls),
          env,
        }).output()).stdout,
      ).trim();
    try {
      assertEquals(await knock({}), "untrusted-certificate");
      for (
        const env of [
          { DENO_TLS_CA_STORE: "system", SSL_CERT_FILE: roots },
          { DENO_CERT: roots },
          { NODE_EXTRA_CA_CERTS: roots },
        ]
      ) assertEquals(await knock(env), "trusted");
    } finally {
      await Deno.remove(folder, { recursive: true });
    }
  });
}
