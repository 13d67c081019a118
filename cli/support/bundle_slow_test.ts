import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import { AdminError } from "../../admin/ask/admin_client.ts";
import { ExitCode } from "../program/exit_codes.ts";
import { tunnel } from "../../tests/support/program/command_line.ts";
import {
  Bundle,
  type BundledProgram,
  type BundleSources,
  Pseudonyms,
  tarBytes,
} from "./bundle.ts";

const SECRETS = {
  key: "MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHplanted",
  password: "hunter2planted",
  bearer: "c2VjcmV0LWJlYXJlci1wbGFudGVk",
  jwt: "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJwbGFudGVkIn0.c2lnbmVk",
  admin: "0badcafe".repeat(8),
  join: "tnl1.abcdefghijabcdefghijabcdefghijabcdefghij" +
    ".abcdefghij.SECRETSECRETSECRETSECR",
};

const PEM = `-----BEGIN PRIVATE KEY-----\n${SECRETS.key}\n` +
  "-----END PRIVATE KEY-----\n";

const PLANTED = [
  PEM,
  `https://root:${SECRETS.password}@etcd.internal:2379`,
  `Authorization: Bearer ${SECRETS.bearer}`,
  `authorization=Basic ${SECRETS.bearer}`,
  SECRETS.jwt,
  SECRETS.admin,
  `tunnel agent --join ${SECRETS.join}`,
  `token: ${SECRETS.bearer}`,
  JSON.stringify({ password: SECRETS.password, key: PEM }),
];

function client(): BundledProgram["client"] {
  const planted = Object.fromEntries(
    PLANTED.map((text, at) => [`field${at}`, text]),
  );
  const answers: Readonly<Record<string, unknown>> = {
    "/v1/status": {
      program: { id: "s1", addresses: { health: "[::]:8092" } },
      warnings: PLANTED.map((message) => ({ severity: "error", message })),
      password: SECRETS.password,
    },
    "/v1/nodes": { nodes: [{ name: "edge-7", address: "10.9.8.7:4444" }] },
    "/v1/conduits": {
      conduits: [{
        ...planted,
        node: "edge-7",
        target: "db.corp.example:5432",
        who: "alice",
      }],
    },
    "/v1/events": { events: PLANTED.map((message) => ({ message })) },
    "/v1/config": { flags: PLANTED },
  };
  return {
    get: (path) =>
      Object.hasOwn(answers, path)
        ? Promise.resolve(answers[path] as never)
        : Promise.reject(
          new AdminError(`there is no ${path}, ${PLANTED[1]}`, 404),
        ),
    close() {},
  };
}

/** A bundle, unpacked by the system's tar. */
async function unpacked(
  how: { readonly isAnonymous: boolean },
): Promise<ReadonlyMap<string, string>> {
  const directory = await Deno.makeTempDir();
  try {
    const state = `${directory}/state`;
    await Deno.mkdir(`${state}/ca`, { recursive: true });
    await Deno.writeTextFile(`${state}/ca/key.pem`, PEM, { mode: 0o600 });
    await Deno.writeTextFile(`${state}/admin.token`, SECRETS.admin);
    const log = `${directory}/log`;
    await Deno.writeTextFile(
      log,
      PLANTED.join("\n") + "\nINFO agent edge-7 linked from 10.9.8.7\n",
    );
    const sources: BundleSources = {
      programs: [{
        name: "server",
        client: client(),
        stateDirectory: state,
        flags: () => PLANTED,
        doctor: () => Promise.resolve(PLANTED.join("\n")),
      }, {
        name: "agent",
        client: {
          ...client(),
          get: () => Promise.reject(new AdminError("nobody answers")),
        },
        stateDirectory: `${directory}/none`,
      }],
      logs: [log, `${directory}/nolog`],
      fetchText: (url) => Promise.resolve(`# ${url}\n${PLANTED.join("\n")}\n`),
      ...how,
    };
    const archive = `${directory}/b.tar.gz`;
    const file = await Deno.open(archive, { write: true, createNew: true });
    await ReadableStream.from(
      tarBytes(new Bundle("b", sources).files(), Date.now()),
    )
      .pipeThrough(new CompressionStream("gzip")).pipeTo(file.writable);
    const { success } = await new Deno.Command("tar", {
      args: ["-xzf", archive, "-C", directory],
    }).output();
    assert(success);
    const files = new Map<string, string>();
    for (const folder of ["b", "b/server"]) {
      for await (
        const { name, isFile } of Deno.readDir(`${directory}/${folder}`)
      ) {
        if (!isFile) continue;
        const path = `${folder}/${name}`;
        files.set(path, await Deno.readTextFile(`${directory}/${path}`));
      }
    }
    return files;
  } finally {
    await Deno.remove(directory, { recursive: true });
  }
}

Deno.test("a bundle has what there is, and says what there is not", async () => {
  const files = await unpacked({ isAnonymous: false });
  assertEquals([...files.keys()].sort(), [
    "b/README.txt",
    "b/log-1.txt",
    "b/machine.json",
    "b/server/conduits.json",
    "b/server/config.json",
    "b/server/doctor.txt",
    "b/server/events.json",
    "b/server/flags.json",
    "b/server/metrics.txt",
    "b/server/nodes.json",
    "b/server/state-files.json",
    "b/server/status.json",
    "b/version.json",
  ]);
  assertStringIncludes(files.get("b/README.txt")!, "agent: status: nobody");
  assertStringIncludes(files.get("b/README.txt")!, "nolog");
  assertStringIncludes(files.get("b/server/metrics.txt")!, "127.0.0.1:8092");
  const listed = JSON.parse(files.get("b/server/state-files.json")!);
  assertEquals(
    listed.map(({ path, mode }: Record<string, string>) => [path, mode])
      .sort((a: string[], b: string[]) => a[0]! < b[0]! ? -1 : 1)
      .filter(([path]: string[]) => path!.endsWith("key.pem")),
    [["ca/key.pem", "0600"]],
  );
  assertStringIncludes(files.get("b/log-1.txt")!, "agent edge-7 linked");
});

for (const isAnonymous of [false, true]) {
  Deno.test(`no secret is in a bundle${isAnonymous ? " without names" : ""}`, async () => {
    const files = await unpacked({ isAnonymous });
    assert(files.size > 10);
    for (const [path, text] of files) {
      for (const [what, secret] of Object.entries(SECRETS)) {
        const parts = what === "join"
          ? ["SECRETSECRET"]
          : what === "jwt"
          ? secret.split(".")
          : [secret];
        for (const part of parts) {
          assert(!text.includes(part), `${path} has the ${what}: ${text}`);
        }
      }
    }
  });
}

Deno.test("an anonymous bundle has no names, and one number for one name", async () => {
  const files = await unpacked({ isAnonymous: true });
  for (const [path, text] of files) {
    for (const name of ["edge-7", "alice", "db.corp", "10.9.8.7"]) {
      assert(!text.includes(name), `${path} has ${name}`);
    }
  }
  const nodes = JSON.parse(files.get("b/server/nodes.json")!);
  const { name } = nodes.nodes[0];
  assertStringIncludes(files.get("b/log-1.txt")!, `agent ${name} linked`);
  assertStringIncludes(files.get("b/server/conduits.json")!, `"${name}"`);
});

Deno.test("names are replaced as wholes, addresses wherever they stand", () => {
  const names = new Pseudonyms();
  names.learn({ nodes: [{ name: "db" }, { name: "db-2", peer: "server" }] });
  const text = names.text("db db-2 dbx server ::1 127.0.0.1 fd00::7 10.0.0.1");
  assertEquals(
    text,
    "name-1 name-2 dbx server ::1 127.0.0.1 address-1 address-2",
  );
  const wild = new Pseudonyms();
  wild.learn({ name: "a.*(b" });
  assertEquals(wild.text("a.*(b axb"), "name-1 axb");
});

Deno.test("tunnel support-bundle writes a file that only its user can read", async () => {
  const directory = await Deno.makeTempDir();
  try {
    const path = `${directory}/x.tar.gz`;
    const proxy = ["--proxy", `unix:${directory}/none.sock`];
    const run = () => tunnel(["support-bundle", ...proxy, "-o", path]);
    const first = await run();
    assertEquals([first.code, first.output], [ExitCode.OK, `${path}\n`]);
    assertEquals((await Deno.stat(path)).mode! & 0o777, 0o600);
    const again = await run();
    assertEquals(again.code, ExitCode.FAILURE);
    assertStringIncludes(again.errors, "there is such a file already [TUN114]");
  } finally {
    await Deno.remove(directory, { recursive: true });
  }
});
