import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import { launcherScript, permissionCase } from "./launcher.ts";

const PARTS = {
  version: "1.2.3",
  machine: "x86_64",
  runtime: { hash: "aaaa", compressedOctets: 40_000_000 },
  program: { hash: "bbbb", compressedOctets: 1234 },
  runFlags: ["--quiet"],
} as const;

Deno.test("the launcher knows where it ends and its files begin", () => {
  const script = launcherScript(PARTS);
  const { length } = new TextEncoder().encode(script);
  assertStringIncludes(
    script,
    `unpack "$folder/deno-aaaa" ${length} 40000000\n` +
      `unpack "$folder/tunnel-bbbb.js" ${length + 40_000_000} 1234\n`,
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
  const script = permissionCase();
  const { stdout } = await new Deno.Command("sh", {
    args: ["-euc", `${script}\necho $allow`, "tunnel", ...words],
    clearEnv: true,
    env: { PATH: "/usr/bin:/bin", ...env },
  }).output();
  return new TextDecoder().decode(stdout).trim().split(" ");
}

Deno.test("each command may do what it needs and no more", async () => {
  const server = await allowed(["server", "--mode=grpc"]);
  assert(server.includes("--allow-net"));
  assert(!server.includes("--allow-run"));
  for (const command of ["token", "node", "ca"]) {
    const flags = await allowed([command, "list"]);
    for (const none of ["--allow-net", "--allow-run", "--allow-ffi"]) {
      assert(!flags.includes(none), `${command} has ${none}`);
    }
    assert(flags.includes("--allow-write"));
  }
  for (const words of [["version"], []]) {
    assert(!(await allowed(words)).includes("--allow-write"));
  }
  assert((await allowed(["demo"])).includes("--allow-run"));
  for (const words of [[], ["version"], ["no", "such"]]) {
    const flags = await allowed(words);
    assert(!flags.includes("-A"));
  }
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
