import { assertEquals, assertRejects, assertThrows } from "@std/assert";
import { certificates } from "../../tests/support/certificates/certificates.ts";
import { FakeTimers } from "../../tests/support/memory/fake_timers.ts";
import { readToken, REREAD_MS, TOKEN_LENGTH_MAX, TokenFile } from "./access.ts";
import { KubernetesConfigError } from "./errors.ts";
import { inClusterAccess } from "./connect.ts";

function environment(host: string): (name: string) => string | undefined {
  const values = new Map([
    ["KUBERNETES_SERVICE_HOST", host],
    ["KUBERNETES_SERVICE_PORT", "443"],
  ]);
  return (name) => values.get(name);
}

async function folderWith(files: Record<string, string>): Promise<string> {
  const folder = await Deno.makeTempDir();
  for (const [name, text] of Object.entries(files)) {
    await Deno.writeTextFile(`${folder}/${name}`, text);
  }
  return folder;
}

Deno.test("a Pod finds its API server, namespace, CA and token", async () => {
  const { ca } = await certificates();
  const folder = await folderWith({
    "ca.crt": ca,
    token: "first\n",
    namespace: "kube-system",
  });
  const clock = new FakeTimers();
  const access = inClusterAccess({
    clock,
    folder,
    environment: environment("fd00::1"),
  });
  assertEquals([access.server, access.namespace, access.authority()], [
    "https://[fd00::1]:443",
    "kube-system",
    ca,
  ]);
  await Deno.writeTextFile(`${folder}/token`, "second\n");
  const first = { authorization: "Bearer second" };
  assertEquals(await access.credential(), first);
  await Deno.writeTextFile(`${folder}/token`, "third\n");
  clock.advance(REREAD_MS - 1);
  assertEquals(await access.credential(), first);
  access.rejected();
  assertEquals(await access.credential(), { authorization: "Bearer third" });
  await Deno.remove(folder, { recursive: true });
});

Deno.test("outside a Pod the next step is --kubeconfig", () => {
  const clock = new FakeTimers();
  assertThrows(
    () => inClusterAccess({ clock, environment: () => undefined }),
    KubernetesConfigError,
    "so this is no Pod; give --kubeconfig",
  );
});

Deno.test("a token that is away for a moment goes on being shown", async () => {
  const folder = await folderWith({ token: "t" });
  const clock = new FakeTimers();
  const file = new TokenFile(`${folder}/token`, clock);
  assertEquals(await file.current(), "t");
  await Deno.writeTextFile(`${folder}/token`, "");
  clock.advance(REREAD_MS);
  assertEquals(await file.current(), "t");
  await Deno.writeTextFile(`${folder}/token`, "u");
  assertEquals(await file.current(), "t", "once a minute");
  clock.advance(REREAD_MS);
  assertEquals(await file.current(), "u");
  await Deno.remove(folder, { recursive: true });
});

Deno.test("a file that holds no token is refused", async () => {
  const folder = await folderWith({
    empty: "\n",
    long: "x".repeat(TOKEN_LENGTH_MAX + 1),
    two: "a\nb",
  });
  const refused = (name: string, words: string) =>
    assertRejects(
      () => readToken(`${folder}/${name}`),
      KubernetesConfigError,
      words,
    );
  await refused("empty", "the file is empty");
  await refused("long", "wanted one line");
  await refused("two", "wanted one line");
  await refused("none", "there is no such file");
  await refused(".", "Cannot read token");
  await Deno.remove(folder, { recursive: true });
});
