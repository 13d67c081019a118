/**
 * The client library as another project has it: with its own `deno.json`, in
 * another folder, without our import map. Its programs are the examples of
 * docs/library.md, so those are type-checked and run, too.
 *
 * @module
 */

import { assertEquals, assertStringIncludes } from "@std/assert";
import { VERSION } from "../../platform/process/version.ts";
import { DatagramPeer } from "../support/peers/datagrams.ts";
import { mustEnd } from "../support/program/run.ts";
import { Tunnel } from "../support/rigs/tunnel_harness.ts";

const ROOT = new URL("../../", import.meta.url).pathname;
const NAME = "@tunnel/client";

/** The programs of docs/library.md, in their order. */
async function examples(): Promise<string[]> {
  const page = await Deno.readTextFile(`${ROOT}docs/library.md`);
  return [...page.matchAll(/^```ts\n(.+?)^```$/gms)].map(([, code]) => code!);
}

/** A project of its own, with `programs` as `0.ts`, `1.ts` …. */
async function project(
  programs: readonly string[],
  config: unknown,
): Promise<string> {
  const folder = await Deno.makeTempDir({ prefix: "tunnel-library-" });
  await Deno.writeTextFile(`${folder}/deno.json`, JSON.stringify(config));
  for (const [index, program] of programs.entries()) {
    await Deno.writeTextFile(`${folder}/${index}.ts`, program);
  }
  return folder;
}

function deno(cwd: string, args: string[]): Promise<string> {
  return mustEnd([Deno.execPath(), ...args], { cwd, env: { NO_COLOR: "1" } });
}

Deno.test("programs of another project dial by the library's name", async () => {
  const programs = await examples();
  const folder = await project(programs, {
    links: [ROOT],
    imports: { [NAME]: `jsr:${NAME}@^${VERSION}` },
  });
  await deno(folder, ["check", ...programs.map((_, index) => `${index}.ts`)]);
  await using tunnel = await Tunnel.linked("streams");
  await using web = Deno.serve(
    { hostname: "127.0.0.1", port: 0, onListen() {} },
    () => new Response("hello from behind"),
  );
  await using echo = await DatagramPeer.echo("heard ");
  const egress = `${folder}/egress.yaml`;
  await Deno.writeTextFile(
    egress,
    `apiVersion: apiserver.k8s.io/v1beta1
kind: EgressSelectorConfiguration
egressSelections:
- name: cluster
  connection:
    proxyProtocol: GRPC
    transport: { uds: { udsName: ${tunnel.socketPath} } }
`,
  );
  const { socketPath } = tunnel;
  const gone = `${folder}/gone.sock`;
  const run = (index: number, port: number, ...routes: readonly string[]) =>
    deno(folder, [
      ...["run", "--no-check", "--no-prompt", "--allow-net"],
      ...[`--allow-read=${socketPath},${egress},${gone}`],
      ...[`--allow-write=${socketPath},${gone}`],
      ...[`${index}.ts`, ...routes, `127.0.0.1:${port}`],
    ]);
  const { port } = web.addr;
  const connected = await run(0, port, socketPath);
  assertStringIncludes(connected, `to 127.0.0.1 ${port}`);
  assertStringIncludes(connected, "hello from behind");
  const other = await run(1, port, gone, socketPath);
  assertStringIncludes(other, "hello from behind");
  assertEquals(await run(2, echo.port, socketPath), "heard ping");
  assertStringIncludes(await run(3, port, socketPath), "hello from behind");
  assertStringIncludes(await run(4, port, egress), "hello from behind");
  assertEquals(programs.length, 5);
  await Deno.remove(folder, { recursive: true });
});

Deno.test("another project imports the library by its path, or as a member", async () => {
  const program = `import { NETWORK_CONTEXTS } from "${NAME}";
console.log(NETWORK_CONTEXTS.join());
`;
  const byPath = program.replace(NAME, `${ROOT}client/mod.ts`);
  const alone = await project([byPath], {});
  assertEquals(
    await deno(alone, ["run", "0.ts"]),
    "controlplane,etcd,cluster\n",
  );
  const whole = await project([], { workspace: ["./app", "./tunnel"] });
  await Deno.symlink(ROOT, `${whole}/tunnel`);
  await Deno.mkdir(`${whole}/app`);
  await Deno.writeTextFile(`${whole}/app/deno.json`, "{}");
  await Deno.writeTextFile(`${whole}/app/0.ts`, program);
  assertEquals(
    await deno(`${whole}/app`, ["run", "0.ts"]),
    "controlplane,etcd,cluster\n",
  );
  for (const folder of [alone, whole]) {
    await Deno.remove(folder, { recursive: true });
  }
});

Deno.test("the library can be published, and its words are all public", async () => {
  const config = JSON.parse(await Deno.readTextFile(`${ROOT}deno.json`));
  assertEquals([config.name, config.version], [NAME, VERSION]);
  await deno(ROOT, ["doc", "--lint", "client/mod.ts"]);
  await deno(ROOT, ["publish", "--dry-run", "--allow-dirty", "--no-check"]);
});

Deno.test("what the library imports by npm is what the rest imports by name", async () => {
  const { imports } = JSON.parse(await Deno.readTextFile(`${ROOT}deno.json`));
  for (const path of ["packets/packet_codec.ts", "grpc/message_codec.ts"]) {
    const source = await Deno.readTextFile(`${ROOT}proto/${path}`);
    assertStringIncludes(source, `from "${imports.protobufjs}/`);
  }
});
