import { assertEquals, assertMatch } from "@std/assert";
import { OpenedAdminPort } from "../../tests/support/rigs/opened_admin_port.ts";

const isRoot = Deno.uid() === 0;
const NOBODY = 65_534;

/** As another user: `setpriv` of util-linux. */
async function asNobody(folder: string, path: string) {
  const { stdout, code } = await new Deno.Command("setpriv", {
    args: [
      `--reuid=${NOBODY}`,
      `--regid=${NOBODY}`,
      "--clear-groups",
      "curl",
      "-s",
      ...path.startsWith("/v1/do") ? ["-X", "POST"] : [],
      "-w",
      "%{http_code}",
      "--unix-socket",
      `${folder}/admin.sock`,
      `http://localhost${path}`,
    ],
    stderr: "null",
  }).output();
  return { code, text: new TextDecoder().decode(stdout) };
}

Deno.test({
  name:
    "another user is refused by the file, or by his number, or may look with his group",
  ignore: !isRoot,
  async fn() {
    await using closed = await OpenedAdminPort.open();
    Deno.chmodSync(closed.folder, 0o755);
    assertEquals((await asNobody(closed.folder, "/v1/who")).text, "000");
    // Somebody has opened the file to all.
    Deno.chmodSync(`${closed.folder}/admin.sock`, 0o666);
    const refused = await asNobody(closed.folder, "/v1/who");
    assertMatch(refused.text, /not for user 65534.*403$/s);
    await using open = await OpenedAdminPort.open({ socketGroup: NOBODY });
    Deno.chmodSync(open.folder, 0o755);
    const seen = await asNobody(open.folder, "/v1/who");
    assertMatch(seen.text, /"role":"view","name":"uid 65534".*200$/s);
    assertMatch((await asNobody(open.folder, "/v1/do")).text, /403$/);
    assertEquals(open.did, ["uid 65534 /v1/do 403"]);
  },
});
