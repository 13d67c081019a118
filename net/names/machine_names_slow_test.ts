/**
 * What a process finds whose `/etc` names our name servers: the promises of
 * `Deno.resolveDns` and of the C library that the resolver relies on.
 *
 * @module
 */

import { assert, assertEquals } from "@std/assert";
import {
  type Answerer,
  dnsAnswer,
  DnsServer,
  fromTable,
} from "../../tests/support/peers/dns_server.ts";

const RESOLVER = new URL("./system_resolver.ts", import.meta.url).href;

/** Prints what comes of each name. */
const PROGRAM = `
const { systemResolver } = await import(Deno.args[0]);
for (const name of Deno.args.slice(1)) {
  const begin = performance.now();
  const said = await systemResolver.lookup(name)
    .then((found) => found.join(), ({ message }) => message);
  console.log(JSON.stringify([said, performance.now() - begin]));
}
Deno.exit();`;

const TABLE = fromTable({
  "db.test": ["10.0.0.1"],
  "db.corp.example": ["10.0.0.2"],
  "deep.db.corp.example": ["10.0.0.3"],
});
const WELL: Answerer = (asked) =>
  asked.name.startsWith("servfail")
    ? [dnsAnswer(asked, [], { code: 2 })]
    : TABLE(asked);

// Files of its own in `/etc`, where that is allowed: by mounts of its own.

const UNSHARE = ["unshare", "--mount", "--propagation", "private"];

/** Whether programs can have files of their own here. */
const mayMount = Deno.build.os === "linux" && await isAllowed();

async function isAllowed(): Promise<boolean> {
  try {
    const [command = "", ...args] = UNSHARE;
    return (await new Deno.Command(command, {
      args: [...args, "mount", "--bind", "/etc/hostname", "/etc/resolv.conf"],
      stdout: "null",
      stderr: "null",
    }).output()).success;
  } catch {
    return false;
  }
}

/**
 * The words before those of a program.
 *
 * @param folder Where the files are kept; they may change while it runs.
 * @param files Texts by name; each is there already.
 */
function withOwnEtc(
  folder: string,
  files: Readonly<Record<string, string>>,
): string[] {
  const mounts = Object.entries(files).map(([name, text]) => {
    Deno.writeTextFileSync(`${folder}/${name}`, text);
    return `mount --bind ${folder}/${name} /etc/${name} &&`;
  });
  return [...UNSHARE, "sh", "-c", `${mounts.join(" ")} exec "$@"`, "sh"];
}

class Machine implements AsyncDisposable {
  readonly folder = Deno.makeTempDirSync();
  readonly well = DnsServer.open(WELL, { hostname: "127.83.1.1", port: 53 });
  readonly dead = DnsServer.open(() => [], {
    hostname: "127.83.1.2",
    port: 53,
  });

  /** What each name's look-up says, and how long it took. */
  async ask(
    resolvConf: string,
    ...names: string[]
  ): Promise<{ readonly said: string[]; readonly tookMs: number[] }> {
    const [command = "", ...args] = withOwnEtc(this.folder, {
      "resolv.conf": resolvConf,
      "hosts": "127.0.0.1 localhost\n10.0.0.9 known.test\n",
      "nsswitch.conf": "hosts: files dns\n",
    });
    const program = `${this.folder}/program.ts`;
    Deno.writeTextFileSync(program, PROGRAM);
    const config = new URL("../../deno.json", import.meta.url).pathname;
    const output = await new Deno.Command(command, {
      args: [
        ...[...args, Deno.execPath(), "run", "--quiet", "-A", "--no-check"],
        ...["--config", config, program, RESOLVER, ...names],
      ],
      env: { DENO_NO_UPDATE_CHECK: "1" },
    }).output();
    const text = new TextDecoder().decode(output.stdout).trim();
    assertEquals(
      new TextDecoder().decode(output.stderr).trim(),
      "",
      "a name server's nonsense is no business of the terminal",
    );
    const lines = text.split("\n").map((line) => JSON.parse(line));
    return {
      said: lines.map(([said]) => said),
      tookMs: lines.map(([, tookMs]) => tookMs),
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.well[Symbol.asyncDispose]();
    await this.dead[Symbol.asyncDispose]();
    await Deno.remove(this.folder, { recursive: true });
  }
}

const WELL_SERVER = "nameserver 127.83.1.1\n";
const DEAD_SERVER = "nameserver 127.83.1.2\n";

Deno.test("a machine's search domains and dots count", {
  ignore: !mayMount,
}, async () => {
  await using machine = new Machine();
  const search = "search none.example corp.example\n";
  const { said } = await machine.ask(
    WELL_SERVER + search,
    ...["db", "db.test", "db.", "known.test"],
  );
  assertEquals(said, [
    ...["10.0.0.2", "10.0.0.1", "lookup db.: no such host", "10.0.0.9"],
  ]);
  machine.well.asked.length = 0;
  const deep = await machine.ask(
    `${WELL_SERVER}${search}options ndots:5 edns0 trust-ad\n`,
    "deep.db",
  );
  assertEquals(deep.said, ["10.0.0.3"]);
  assertEquals(machine.well.asked[0]?.name, "deep.db.none.example");
});

Deno.test("a machine's dead name server costs nothing beside a live one", {
  ignore: !mayMount,
}, async () => {
  await using machine = new Machine();
  const names = ["db.test", "nobody.test", "db.corp.example"];
  const { said, tookMs } = await machine.ask(
    DEAD_SERVER + WELL_SERVER,
    ...["db.test", "db.corp.example"],
  );
  assertEquals(said, ["10.0.0.1", "10.0.0.2"]);
  assert(tookMs.every((each) => each < 1_000), `${names}: ${tookMs}`);
  assert(machine.dead.asked.length > 0);
});

Deno.test(
  "names that do not exist, servers that fail and silence are told apart",
  {
    ignore: !mayMount,
  },
  async () => {
    await using machine = new Machine();
    const well = await machine.ask(WELL_SERVER, "nobody.test", "servfail.test");
    assertEquals(well.said, [
      "lookup nobody.test: no such host",
      "lookup servfail.test: server misbehaving",
    ]);
    const dead = await machine.ask(DEAD_SERVER, "db.test", "known.test");
    assertEquals(dead.said, ["lookup db.test: i/o timeout", "10.0.0.9"]);
  },
);

Deno.test("what Deno.resolveDns cannot read, the C library does", {
  ignore: !mayMount,
}, async () => {
  await using machine = new Machine();
  const conf = `${WELL_SERVER}options unheard-of\nnonsense\n`;
  assertEquals((await machine.ask(conf, "db.test")).said, ["10.0.0.1"]);
});
