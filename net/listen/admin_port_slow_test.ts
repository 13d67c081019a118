import { assertEquals, assertMatch } from "@std/assert";
import { RecordedLog } from "../../tests/support/watch/recorded_log.ts";
import type { AdminRoute } from "../admin/admin_api.ts";
import { plain } from "../admin/http_endpoints.ts";
import { AdminPort, apiBeside } from "./admin_port.ts";

const ROUTES: readonly AdminRoute[] = [
  {
    method: "GET",
    path: "/v1/who",
    role: "view",
    answer: ({ who }) => ({ ...who }),
  },
  { method: "POST", path: "/v1/do", role: "operate", answer: () => ({}) },
];

/** A port with a socket in a folder of its own. */
class Opened implements AsyncDisposable {
  readonly did: string[] = [];
  readonly folder = Deno.makeTempDirSync();
  readonly port: AdminPort;

  constructor(access: { socketGroup?: number }) {
    this.port = new AdminPort({
      address: { hostname: "127.0.0.1", port: 0 },
      access: { stateDirectory: this.folder, ...access },
      log: new RecordedLog(),
      handler: apiBeside(
        ROUTES,
        () => () => plain(200, "metrics"),
        ({ who, path, status }) =>
          this.did.push(`${who.name} ${path} ${status}`),
      ),
    });
  }

  static async open(access: { socketGroup?: number } = {}): Promise<Opened> {
    const opened = new Opened(access);
    await opened.port.open();
    return opened;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.port.close();
    await Deno.remove(this.folder, { recursive: true });
  }
}

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
    await using closed = await Opened.open();
    Deno.chmodSync(closed.folder, 0o755);
    assertEquals((await asNobody(closed.folder, "/v1/who")).text, "000");
    // Somebody has opened the file to all.
    Deno.chmodSync(`${closed.folder}/admin.sock`, 0o666);
    const refused = await asNobody(closed.folder, "/v1/who");
    assertMatch(refused.text, /not for user 65534.*403$/s);
    await using open = await Opened.open({ socketGroup: NOBODY });
    Deno.chmodSync(open.folder, 0o755);
    const seen = await asNobody(open.folder, "/v1/who");
    assertMatch(seen.text, /"role":"view","name":"uid 65534".*200$/s);
    assertMatch((await asNobody(open.folder, "/v1/do")).text, /403$/);
    assertEquals(open.did, ["uid 65534 /v1/do 403"]);
  },
});
