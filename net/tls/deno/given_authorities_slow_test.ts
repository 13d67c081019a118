import { assertEquals } from "@std/assert";
import { certificates } from "../../../tests/support/certificates/certificates.ts";
import { testEachEngine } from "../../../tests/support/rigs/tls_engines.ts";
import { TlsServer } from "../../../tests/support/peers/tls_server.ts";

const HERE = new URL("./given_authorities.ts", import.meta.url).href;

/** Connects to the port it is given, without naming any authority. */
const KNOCK = `
const { trustOnlyGivenAuthorities } = await import(${JSON.stringify(HERE)});
const [port, forgets] = Deno.args;
if (forgets === "yes" && !trustOnlyGivenAuthorities()) console.log("cannot");
try {
  const conn = await Deno.connectTls({ hostname: "localhost", port: +port });
  await conn.handshake();
  console.log("trusted");
} catch (error) {
  console.log(error.message);
}`;

testEachEngine(
  "no public authority is trusted once they are forgotten",
  async (engine) => {
    const { ca } = await certificates();
    const folder = await Deno.makeTempDir();
    await Deno.writeTextFile(`${folder}/roots.pem`, ca);
    await Deno.writeTextFile(`${folder}/knock.ts`, KNOCK);
    await using server = await TlsServer.open(
      engine,
      (socket) => socket.close(),
      {
        clientCertificate: "none",
      },
    );
    // The public authorities of this machine are, for once, the one of the tests.
    const roots = {
      SSL_CERT_FILE: `${folder}/roots.pem`,
      DENO_TLS_CA_STORE: "system",
    };
    const knock = async (
      forgets: string,
      env: Record<string, string> = roots,
    ) =>
      new TextDecoder().decode(
        (await new Deno.Command(Deno.execPath(), {
          args: ["run", "--quiet", "--no-config", "-A", `${folder}/knock.ts`]
            .concat(`${server.port}`, forgets),
          env,
        }).output()).stdout,
      ).trim();
    try {
      assertEquals(await knock("no"), "trusted");
      assertEquals(
        await knock("yes"),
        "invalid peer certificate: UnknownIssuer",
      );
      assertEquals(
        await knock("yes", { ...roots, DENO_CERT: roots.SSL_CERT_FILE }),
        "cannot\ntrusted",
      );
    } finally {
      await Deno.remove(folder, { recursive: true });
    }
  },
);
