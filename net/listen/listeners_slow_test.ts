import { assert, assertEquals } from "@std/assert";

for (const sockets of [undefined, "platform"]) {
  const kind = sockets ?? "the best sockets";
  Deno.test(`all ports survive a lack of descriptors, ${kind}`, async () => {
    const folder = await Deno.makeTempDir();
    const script = `${folder}/starve.ts`;
    await Deno.writeTextFile(script, STARVE);
    const { stdout } = await new Deno.Command("sh", {
      args: [
        "-c",
        // Not all permissions: with these the program is run.
        'ulimit -n 90; exec "$0" run --allow-net --allow-read --allow-write ' +
        "--allow-env --allow-sys --allow-ffi --no-check --quiet " +
        '--config "$1" "$2" "$3"',
        Deno.execPath(),
        new URL("../../deno.json", import.meta.url).pathname,
        script,
        new URL("../..", import.meta.url).href,
      ],
      env: sockets === undefined ? {} : { TUNNEL_SOCKETS: sockets },
      stderr: "inherit",
      // A child that never recovers would knock for ever.
      signal: AbortSignal.timeout(60_000),
    }).output();
    const lines = new TextDecoder().decode(stdout).trim().split("\n");
    assertEquals(lines.filter((line) => line === "tcp recovered").length, 1);
    assertEquals(lines.filter((line) => line === "agents recovered").length, 1);
    const problems = lines.filter((line) => line.startsWith("problem"));
    assert(problems.some((line) => /too many open/i.test(line)), `${lines}`);
    await Deno.remove(folder, { recursive: true });
  });
}

/** Uses up all descriptors while clients knock, then sets them free. */
const STARVE = `
const host = Deno.args[0];
const { listenTcp } = await import(host + "net/listen/listeners.ts");
const { listenSecure } = await import(host + "net/listen/secure_listener.ts");
const { Credentials } = await import(host + "net/tls/trust/credentials.ts");
const { connectTls } = await import(host + "net/dial/server_connect.ts");
const { usualLimiter } = await import(host + "tests/support/rigs/usual_limiter.ts");
const { certificates } = await import(host + "tests/support/certificates/certificates.ts");
// The platform panics when it first meets signals without descriptors.
Deno.addSignalListener("SIGUSR2", () => {});
const all = await certificates();
const folder = await Deno.makeTempDir();
const files = { cert: folder + "/cert", key: folder + "/key", ca: folder + "/ca" };
Deno.writeTextFileSync(files.cert, all.server.cert);
Deno.writeTextFileSync(files.key, all.server.key);
Deno.writeTextFileSync(files.ca, all.ca);
const onProblem = (line) => {
  console.log("problem " + line);
};
const starved = [];
const starve = () => { try { for (;;) starved.push(Deno.openSync("/dev/null")); } catch {} };
const free = () => { for (const file of starved.splice(0)) file.close(); };
const tcp = Promise.withResolvers();
const agents = Promise.withResolvers();
const at = { hostname: "127.0.0.1", port: 0 };
const tcpListener = listenTcp(at, { onConnection: tcp.resolve, onProblem });
const agentListener = await listenSecure({ ...at, credentials: Credentials.load(files),
  clientCertificate: "required", alpn: [], minVersion: "TLSv1.2", handshakeTimeoutMs: 30000,
  limiter: usualLimiter() }, {
  onConnection: () => agents.resolve(),
  onRefused: (error) => console.log(error.message),
  onProblem,
});
const knock = () => connectTls({
  host: "127.0.0.1", port: agentListener.port, serverName: "tunnel-server",
  credentials: { ...all.client, ca: all.ca }, alpn: [], proxyEnv: {}, timeoutMs: 30000,
}).then(() => {});
Deno.removeSync(folder, { recursive: true });
starve();
starved.pop().close();
starved.pop().close();
const first = Deno.connect({ port: tcpListener.port });
const second = Deno.connect({ port: agentListener.port });
await Promise.all([first, second]);
await new Promise((resolve) => setTimeout(resolve, 50));
free();
// Whoever came before was refused, or waits.
await Deno.connect({ port: tcpListener.port });
await tcp.promise;
console.log("tcp recovered");
const again = () => knock().catch(again);
again();
await agents.promise;
console.log("agents recovered");
Deno.exit();
`;
