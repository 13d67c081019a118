import { assertEquals } from "@std/assert";
import { isReadOnly } from "../walk/room.ts";
import { lookAtDirectory } from "./state_check.ts";

const MOUNTS = `21 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
22 21 0:20 / /srv ro,relatime shared:2 - ext4 /dev/sdb1 ro
23 22 0:21 / /srv/state rw shared:3 - tmpfs tmpfs rw
`;

Deno.test("the mount that a path is on says whether it can be written", () => {
  assertEquals(isReadOnly("/var/lib", MOUNTS), false);
  assertEquals(isReadOnly("/srv", MOUNTS), true);
  assertEquals(isReadOnly("/srv/x", MOUNTS), true);
  assertEquals(isReadOnly("/srvx", MOUNTS), false);
  assertEquals(isReadOnly("/srv/state/tunnel", MOUNTS), false);
  assertEquals(isReadOnly("/srv", ""), false);
});

Deno.test("looking at a directory that is not there does not make it", async () => {
  const parent = await Deno.makeTempDir();
  const root = `${parent}/server`;
  const finding = await lookAtDirectory(root);
  assertEquals([finding.outcome, finding.code], ["warning", "TUN121"]);
  assertEquals([...Deno.readDirSync(parent)], []);
  await Deno.remove(parent);
});
