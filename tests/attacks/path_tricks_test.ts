import { assertEquals, assertThrows } from "@std/assert";
import { listenUnix } from "../../net/listen/listeners.ts";
import { ListenError } from "../../net/bind/listen_error.ts";
import {
  JoinTokenError,
  parseJoinToken,
} from "../../proto/identity/join_token.ts";
import { isNodeName } from "../../proto/identity/node_name.ts";

// Names of peers become names of files: `nodes/<name>.json`, `tokens/<id>.json`.

const TRICKS = [
  ...["..", ".", "../ca/current", "a/b", "/etc/passwd", "a\\b"],
  ...["a\0b", "a\nb", "", " ", "~root", "%2e%2e", "A".repeat(4096)],
];

for (const trick of TRICKS) {
  const shown = JSON.stringify(trick.slice(0, 20));
  Deno.test(`no node is named ${shown}, and no token has that id`, () => {
    assertEquals(isNodeName(trick), false);
    const hash = "A".repeat(43);
    const token = `tnl1.${hash}.${trick}.${"A".repeat(22)}`;
    assertThrows(() => parseJoinToken(token), JoinTokenError);
  });
}

Deno.test("a socket is not opened through a link that somebody has put there", async () => {
  const folder = await Deno.makeTempDir();
  await Deno.writeTextFile(`${folder}/precious`, "kept");
  await Deno.symlink(`${folder}/precious`, `${folder}/front.sock`);
  let refused: unknown;
  try {
    await listenUnix(`${folder}/front.sock`, {
      onConnection: (conn) => conn.close(),
      onProblem: () => {},
    });
  } catch (error) {
    refused = error;
  }
  assertEquals(refused instanceof ListenError, true);
  assertEquals(await Deno.readTextFile(`${folder}/precious`), "kept");
  await Deno.remove(folder, { recursive: true });
});
