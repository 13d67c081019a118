/**
 * A server whose state is whole starts and serves on a full disk, and says
 * which file it could not write.
 *
 * @module
 */

import { assertEquals, assertMatch, assertRejects } from "@std/assert";
import { messageOf } from "../../platform/errors/error_code.ts";
import { replaceFile } from "../../platform/files/atomic_file.ts";
import { fillDisk, tinyDisk, unmount } from "../support/memory/tiny_disk.ts";
import { IdentityRig } from "../support/rigs/identity_rig.ts";

const folder = await tinyDisk(512);

Deno.test({
  name: "a server starts on a full disk, and its nodes come back",
  ignore: folder === undefined,
  async fn() {
    const state = `${folder}/state`;
    const first = await IdentityRig.open({}, state);
    const node = await first.joined("n1");
    await first.tunnel[Symbol.asyncDispose]();
    const ballast = await fillDisk(folder!);
    const path = `${state}/new`;
    const error = await assertRejects(() => replaceFile(path, "text"));
    assertEquals(
      messageOf(error),
      `cannot use ${path}: the disk is full; make room and try again`,
    );
    {
      // At another port than before, which it cannot write down.
      await using rig = await IdentityRig.open({}, state);
      await rig.link(node);
      const kept = rig.tunnel.log.matching(/^Cannot keep /);
      assertEquals(kept.length, 1);
      assertMatch(
        kept[0]!.message,
        /serving\.json: the disk is full; make room/,
      );
    }
    await Deno.remove(ballast);
    await unmount(folder!);
  },
});
