import { assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import { allCommands } from "../cli/commands.ts";
import {
  RELOADING,
  RIGHTS,
  type Rights,
  V8_FLAGS_SMALL,
} from "../cli/program/rights.ts";
import { runToEnd } from "../tests/support/program/run.ts";
import {
  AT_LEAST,
  type CarriedFile,
  launcherScript,
  memoryFlags,
  permissionCase,
  type Unix,
} from "./launcher.ts";

const PARTS = {
  version: "1.2.3",
  system: "linux",
  machine: "Linux x86_64",
  runtime: { hash: "aaaa", bytes: 99_000_000, compressedBytes: 40_000_000 },
  program: {
    hash: "bbbb",
    bytes: 4321,
    compressedBytes: 1234,
    codeBytes: 7,
    entryBytes: 11,
  },
  runFlags: ["--quiet"],
  commands: await allCommands(),
} as const;

Deno.test("the launcher knows where it ends and its files begin", () => {
  const script = launcherScript(PARTS);
  const { length } = new TextEncoder().encode(script);
  assertStringIncludes(
    script,
    `unpack "$folder/runtime-aaaa/tunnel" ${length} 40000000 99000000\n`,
  );
  assertStringIncludes(
    script,
    `unpack "$program.$$" ${length + 40_000_000} 1234 4321\n`,
  );
});

Deno.test("the launcher ends with a newline that nothing follows", () => {
  // What stands behind the script is not text: the shell must have left by then.
  assertEquals(launcherScript(PARTS).endsWith('"$@"\n'), true);
});

/** What the launcher lets `words` ask the platform for. */
async function allowed(
  words: readonly string[],
  env: Record<string, string> = {},
): Promise<string[]> {
  const script = permissionCase(PARTS.commands);
  const { stdout } = await runToEnd(
    ["sh", "-euc", `${script}\necho $allow`, "tunnel", ...words],
    { clearEnv: true, env: { PATH: "/usr/bin:/bin", ...env } },
  );
  return stdout.trim().split(" ");
}

Deno.test("the launcher gives each command the rights that it states", async () => {
  for (const { name, rights } of PARTS.commands) {
    assertEquals(await allowed([name, "list"]), [...RIGHTS[rights]], name);
  }
  for (const words of [[], ["help"], ["--help"], ["no", "such"]]) {
    assertEquals(await allowed(words), [...RIGHTS.look]);
  }
});

Deno.test("five programs start others by themselves, and what only prints has no network", () => {
  const having = (rights: Rights) =>
    PARTS.commands.filter((command) => command.rights === rights)
      .map(({ name }) => name).sort();
  assertEquals(having("programs"), [
    ...["dashboard", "demo", "install", "uninstall", "upgrade"],
  ]);
  assertEquals(having("look"), [
    ...["completion", "config", "egress-config", "explain", "man", "version"],
  ]);
});

Deno.test("only with a kubeconfig may a server or an agent run programs", async () => {
  const runs = async (...given: Parameters<typeof allowed>) =>
    (await allowed(...given)).includes("--allow-run");
  assertEquals(await runs(["agent", "--server=a:1"]), false);
  assertEquals(await runs(["agent", "--kubeconfig=/k"]), true);
  assertEquals(await runs(["server", "--discovery-kubeconfig", "/k"]), true);
  assertEquals(await runs(["yurttunnel-agent", "--kube-config", "/k"]), true);
  assertEquals(await runs(["proxy", "-kube_config=/k"]), true);
  assertEquals(await runs(["agent"], { TUNNEL_KUBECONFIG: "/k" }), true);
  const other = [
    "--discovery-config=/c",
    "--proxy-config",
    "/c",
    "--kubernetes",
  ];
  assertEquals(await runs(["server", ...other, "--kubeconfig-qps=3"]), false);
  assertEquals(await runs(["version"], { KUBECONFIG: "/k" }), false);
  assertEquals(await runs(["node", "list", "--kubeconfig=/k"]), true);
});

Deno.test("a kubeconfig that a configuration file names is one, too", async () => {
  const folder = await Deno.makeTempDir();
  const [named, other] = [`${folder}/a b.yaml`, `${folder}/c.yaml`];
  await Deno.writeTextFile(named, "v: 2\nkubeconfig: /etc/k\n");
  await Deno.writeTextFile(other, "v: 2\nserver: a:1\n");
  const runs = async (...given: Parameters<typeof allowed>) =>
    (await allowed(...given)).includes("--allow-run");
  for (const [path, isNamed] of [[named, true], [other, false]] as const) {
    assertEquals(await runs(["agent", "--config", path]), isNamed);
    assertEquals(await runs(["agent", `--config=${path}`]), isNamed);
    assertEquals(await runs(["agent"], { TUNNEL_CONFIG: path }), isNamed);
  }
  assertEquals(await runs(["agent", "--config", `${folder}/none`]), false);
  await Deno.remove(folder, { recursive: true });
});

Deno.test("V8 uses little within a small limit of memory, or as it is told", async () => {
  const flagsWith = async (
    files: Readonly<Record<string, string>>,
    env: Record<string, string> = {},
  ): Promise<string> => {
    const root = await Deno.makeTempDir();
    for (const [path, text] of Object.entries(files)) {
      const folder = root + path.slice(0, path.lastIndexOf("/"));
      await Deno.mkdir(folder, { recursive: true });
      await Deno.writeTextFile(root + path, `${text}\n`);
    }
    const script = `${AT_LEAST}\n${memoryFlags(root)}\nprintenv DENO_V8_FLAGS`;
    const { stdout } = await runToEnd(
      ["sh", "-euc", `${script} || :`],
      { clearEnv: true, env: { PATH: "/usr/bin:/bin", ...env } },
    );
    await Deno.remove(root, { recursive: true });
    return stdout.trim();
  };
  const [of, top] = ["/proc/self/cgroup", "/sys/fs/cgroup"];
  const [mib48, mib96] = ["50331648", "100663296"];
  const small = {
    [of]: "0::/pods/pod1/c2",
    [`${top}/pods/pod1/c2/memory.max`]: "max",
    [`${top}/pods/memory.max`]: mib48,
  };
  assertEquals(await flagsWith(small), V8_FLAGS_SMALL);
  assertEquals(await flagsWith(small, { DENO_V8_FLAGS: "--own" }), "--own");
  // A container's own group is at the top.
  for (const path of ["/", "/docker/4f", "/../../c2"]) {
    const files = { [of]: `0::${path}`, [`${top}/memory.max`]: mib48 };
    assertEquals(await flagsWith(files), V8_FLAGS_SMALL, path);
  }
  const first = `9:pids:/a\n4:cpu,memory:/a b\n1:name=systemd:/\n0::/`;
  const v1 = `${top}/memory/a b/memory.limit_in_bytes`;
  assertEquals(await flagsWith({ [of]: first, [v1]: mib48 }), V8_FLAGS_SMALL);
  const none: Record<string, string>[] = [
    {},
    { [of]: "0::/" },
    { [of]: "0::/", [`${top}/memory.max`]: "max" },
    { [of]: "0::/", [`${top}/memory.max`]: mib96 },
    { [of]: first, [v1]: "9223372036854771712" },
    { [of]: "4:pids:/a", [`${top}/memory/a/memory.limit_in_bytes`]: mib48 },
  ];
  for (const files of none) {
    assertEquals(await flagsWith(files), "", JSON.stringify(files));
  }
});

const ENTRY = "the entry";

/** Stands for the runtime: it unpacks, or says how it was called. */
const RUNTIME = `#!/bin/sh
[ "$1" != --version ] || exit 0
for last do :; done
case $* in *--allow-write=*)
  [ "$(cat)" = the ] || exit 1
  mkdir -p "$last"; printf %s "${ENTRY}" >"$last/main.js"
  ls "\${last%/*}" | grep -e -01 -e -02; exit 0 ;;
esac
[ -z "\${HANGS_UP:-}" ] || kill -HUP $$
echo "ran \${0%/*} $* in $(pwd)"
`;

async function carried(
  text: string,
): Promise<CarriedFile & { readonly compressed: Blob }> {
  const content = new Blob([text]);
  const stream = content.stream().pipeThrough(new CompressionStream("gzip"));
  const compressed = await new Response(stream).blob();
  const hash = `h${content.size}`;
  const { size: bytes } = content;
  return { hash, bytes, compressedBytes: compressed.size, compressed };
}

interface Launched {
  readonly code: number;
  readonly said: string;
}

/** A packaged file whose runtime is a few words long. */
class Packaged implements AsyncDisposable {
  readonly folder = Deno.makeTempDirSync();
  readonly home = `${this.folder}/home`;
  readonly cache = `${this.home}/.cache/tunnel`;

  static async make(system: Unix = "linux"): Promise<Packaged> {
    const packaged = new Packaged();
    const runtime = await carried(RUNTIME);
    const program = {
      ...await carried("the program"),
      codeBytes: "the".length,
      entryBytes: ENTRY.length,
    };
    const machine = system === "macos"
      ? "Darwin arm64"
      : `Linux ${Deno.build.arch}`;
    const script = launcherScript({
      ...PARTS,
      system,
      machine,
      runtime,
      program,
    });
    const whole = new Blob([script, runtime.compressed, program.compressed]);
    const path = `${packaged.folder}/tunnel`;
    await Deno.writeFile(path, whole.stream(), { mode: 0o755 });
    await Deno.mkdir(packaged.home);
    await Deno.mkdir(`${packaged.folder}/tmp`);
    return packaged;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Deno.remove(this.folder, { recursive: true });
  }

  /** Runs it after `words` of the shell, in which `$F` is its folder. */
  async run(
    words = "",
    prefix: readonly string[] = [],
    command = "version",
  ): Promise<Launched> {
    const shell = ["sh", "-c", `${words} exec "$F/tunnel" ${command}`];
    const { code, stdout, stderr } = await runToEnd([...prefix, ...shell], {
      clearEnv: true,
      env: {
        PATH: "/usr/sbin:/usr/bin:/sbin:/bin",
        F: this.folder,
        HOME: this.home,
        TMPDIR: `${this.folder}/tmp`,
      },
    });
    return { code, said: `${stdout}${stderr}` };
  }
}

Deno.test("the launcher unpacks once, and again what is not whole", async () => {
  await using packaged = await Packaged.make();
  const { cache } = packaged;
  assertStringIncludes((await packaged.run()).said, `ran ${cache}/runtime-`);
  const names = [...Deno.readDirSync(cache)].map(({ name }) => name).sort();
  assertEquals(names.length, 2);
  const runtime = `${cache}/${names[0]}/tunnel`;
  const before = await Deno.stat(runtime);
  assertEquals((await packaged.run()).code, 0);
  assertEquals((await Deno.stat(runtime)).ino, before.ino);
  await Deno.truncate(runtime, 5);
  const entry = `${cache}/${names[1]}/main.js`;
  await Deno.truncate(entry, 5);
  assertStringIncludes((await packaged.run()).said, "ran ");
  assertEquals((await Deno.stat(runtime)).size, before.size);
  assertEquals((await Deno.stat(entry)).size, ENTRY.length);
});

Deno.test("a file that is damaged is told from the whole one that was unpacked", async () => {
  await using packaged = await Packaged.make();
  const path = `${packaged.folder}/tunnel`;
  const check = "export _TUNNEL_CHECK=1;";
  const damaged = {
    code: 1,
    said: `tunnel: Cannot run ${path}: it is damaged; copy it again\n`,
  };
  assertEquals((await packaged.run(check)).code, 0);
  const whole = await Deno.readFile(path);
  // The last of the four bytes of length that end a member, and one of its sum.
  for (const place of [-1, -6]) {
    const bytes = whole.slice();
    bytes[bytes.length + place]! ^= 1;
    await Deno.writeFile(path, bytes);
    assertEquals(await packaged.run(check), damaged);
  }
  await Deno.writeFile(path, whole.subarray(0, -20));
  assertEquals(await packaged.run(check), damaged);
  assertEquals((await packaged.run()).code, 0, "nobody asked");
});

Deno.test("an answer for a stdout that is closed is not thrown away", async () => {
  await using packaged = await Packaged.make();
  const said = "tunnel: Cannot write to standard output: it is closed\n";
  assertEquals(await packaged.run("exec >&-;"), { code: 1, said });
  // What goes on for long may be started so, and says all in its log.
  for (const command of [...RELOADING, "forward"]) {
    const { said } = await packaged.run("exec >&-;", [], command);
    assertMatch(said, /write error|I\/O error/, "it was run");
  }
});

Deno.test("an old version goes, unless a process runs from it", async () => {
  await using packaged = await Packaged.make();
  const { cache } = packaged;
  for (const name of ["runtime-01", "tunnel-01", "tunnel-02", "tunnel-03"]) {
    await Deno.mkdir(`${cache}/${name}`, { recursive: true, mode: 0o700 });
  }
  await Deno.chmod(cache, 0o700);
  const runs = new Deno.Command("tail", {
    args: ["-f", "/dev/null", `${cache}/tunnel-02/main.js`],
    stderr: "null",
  }).spawn();
  await packaged.run();
  const left = [...Deno.readDirSync(cache)].map(({ name }) => name)
    .filter((name) => /-0\d$/.test(name)).sort();
  runs.kill();
  await runs.status;
  assertEquals(left, ["tunnel-02", "tunnel-03"]);
});

Deno.test("what the runtime cannot do without is said in a sentence", async () => {
  await using packaged = await Packaged.make();
  const few = await packaged.run("ulimit -n 33;");
  assertEquals(few, {
    code: 1,
    said: "tunnel: Cannot start with 33 descriptors: 48 are needed, and one " +
      'for each connection; raise "ulimit -n"\n',
  });
  const small = await packaged.run("ulimit -v 2000000;");
  assertEquals(small.code, 1);
  assertStringIncludes(
    small.said,
    "within 2000000 KiB of addresses (ulimit -v)",
  );
  // The soft limit is raised by the runtime.
  assertEquals((await packaged.run("ulimit -S -n 16;")).code, 0);
});

Deno.test("in a folder that is gone the program runs in another one", async () => {
  await using packaged = await Packaged.make();
  const { code, said } = await packaged.run(
    "mkdir $F/gone; cd $F/gone; rmdir $F/gone;",
  );
  assertEquals(code, 0);
  assertMatch(said, /^ran .* in \/$/m);
});

Deno.test("SIGHUP ends only what does not read files again", async () => {
  await using packaged = await Packaged.make();
  const words = "HANGS_UP=1; export HANGS_UP;";
  for (const command of RELOADING) {
    assertStringIncludes((await packaged.run(words, [], command)).said, "ran ");
  }
  assertEquals(await packaged.run(words), { code: 129, said: "" });
});

Deno.test("a folder that will not do is passed over, with its reason", async () => {
  await using packaged = await Packaged.make();
  const { folder, home } = packaged;
  await Deno.writeTextFile(`${home}/.cache`, "a file");
  const { said } = await packaged.run();
  assertStringIncludes(said, `ran ${folder}/tmp/tunnel-${Deno.uid()}/runtime-`);
  const refused = await packaged.run("TMPDIR=/dev/null; export TMPDIR;");
  assertEquals(refused.code, 1);
  assertStringIncludes(
    refused.said,
    `Cannot unpack: ${home}/.cache/tunnel cannot be made; ` +
      `/dev/null/tunnel-${Deno.uid()} cannot be made; set TUNNEL_CACHE_DIR`,
  );
});

/** Mounts of its own, where this is allowed. */
const UNSHARE = ["unshare", "--mount"];
const mayMount = Deno.build.os === "linux" && await isAllowed();

async function isAllowed(): Promise<boolean> {
  try {
    const [command = "", ...args] = UNSHARE;
    return (await new Deno.Command(command, {
      args: [...args, "sh", "-c", "mount -t tmpfs -o noexec none /mnt"],
      stdout: "null",
      stderr: "null",
    }).output()).success;
  } catch {
    return false;
  }
}

Deno.test("a HOME where nothing may be run is passed over", {
  ignore: !mayMount,
}, async () => {
  await using packaged = await Packaged.make();
  const mount = "mount -t tmpfs -o noexec none $HOME;";
  const { said } = await packaged.run(mount, UNSHARE);
  assertStringIncludes(said, `ran ${packaged.folder}/tmp/tunnel-`);
});

Deno.test("a machine without /proc is told so", {
  ignore: !mayMount,
}, async () => {
  await using packaged = await Packaged.make();
  const { code, said } = await packaged.run(
    "mount -t tmpfs none /proc;",
    UNSHARE,
  );
  assertEquals(code, 1);
  assertStringIncludes(said, "Cannot start without /proc");
});

const SHELLS = [["sh"], ["dash"], ["bash", "--posix"], ["busybox", "sh"]];

Deno.test("both scripts are read by each shell of this machine", async () => {
  for (const system of ["linux", "macos"] as const) {
    const script = launcherScript({ ...PARTS, system });
    for (const [shell = "", ...args] of SHELLS) {
      let child: Deno.ChildProcess;
      try {
        child = new Deno.Command(shell, {
          args: [...args, "-n"],
          stdin: "piped",
        }).spawn();
      } catch {
        continue; // Not here.
      }
      await new Blob([script]).stream().pipeTo(child.stdin);
      assertEquals((await child.status).success, true, `${shell}, ${system}`);
    }
  }
});

Deno.test("the script of macOS needs nothing that Linux alone has", async () => {
  const script = launcherScript({ ...PARTS, system: "macos" });
  assertEquals(/\/proc|glibc|cmdline|\.deb/.exec(script), null);
  await using packaged = await Packaged.make("macos");
  const { cache, folder } = packaged;
  // The one program whose answer is the machine's.
  await Deno.mkdir(`${folder}/bin`);
  const uname = "#!/bin/sh\necho Darwin arm64\n";
  await Deno.writeTextFile(`${folder}/bin/uname`, uname, { mode: 0o755 });
  for (const name of ["tunnel-01", "tunnel-02"]) {
    await Deno.mkdir(`${cache}/${name}`, { recursive: true, mode: 0o700 });
  }
  await Deno.chmod(cache, 0o700);
  const args = ["-f", "/dev/null", `${cache}/tunnel-02/main.js`];
  const runs = new Deno.Command("tail", { args, stderr: "null" }).spawn();
  assertStringIncludes(
    (await packaged.run()).said,
    "this file is for Darwin arm64; take the other one",
  );
  const { said } = await packaged.run('PATH="$F/bin:$PATH";');
  runs.kill();
  await runs.status;
  assertStringIncludes(said, `ran ${cache}/runtime-`);
  const left = [...Deno.readDirSync(cache)].map(({ name }) => name);
  assertEquals(left.filter((name) => /-0\d$/.test(name)), ["tunnel-02"]);
});
