// deno-lint-ignore-file no-console -- a command that says what it does.
/**
 * Takes a picture of every view in three widths, light and dark, for people to
 * look at.
 *
 * Usage: `screenshots.ts FOLDER [VIEW…]`
 *
 * @module
 */

import type { Browser } from "playwright-core";
import { openBrowser, Visit } from "./browser.ts";
import { StageServer } from "./stage_server.ts";

const WIDTHS = [[1280, 800], [768, 1024], [360, 740]] as const;

/** What is looked at: a name, and where it is. */
export const VIEWS: ReadonlyMap<string, string> = new Map<string, string>([
  ["overview", "overview"],
  ["nodes", "nodes"],
  ["node", "nodes/edge-51"],
  ["conduits", "conduits"],
  ["services", "services"],
  ["discovery", "discovery"],
  ["certificates", "certificates"],
  ["log", "log"],
  ["audit", "log?of=audit"],
]);

/** All pictures of the views that are named, of all if none is. */
async function takePictures(
  browser: Browser,
  link: string,
  folder: string,
  names: readonly string[] = [],
): Promise<void> {
  await Deno.mkdir(folder, { recursive: true });
  for (const [width, height] of WIDTHS) {
    for (const colorScheme of ["light", "dark"] as const) {
      await using visit = await Visit.open(browser, link, {
        viewport: { width, height },
        colorScheme,
      });
      await visit.page.locator(".counts").waitFor();
      // A line in the charts.
      await visit.page.waitForTimeout(4_000);
      for (const [name, place] of VIEWS) {
        if (names.length > 0 && !names.includes(name)) continue;
        await visit.goTo(place);
        await visit.page.waitForTimeout(700);
        const path = `${folder}/${name}-${width}-${colorScheme}.png`;
        await visit.page.screenshot({ path });
      }
      visit.check();
    }
  }
}

if (import.meta.main) {
  const [folder = "screenshots", ...names] = Deno.args;
  await using stage = new StageServer();
  await using browser = await openBrowser();
  await takePictures(browser, stage.link(), folder, names);
  console.log(folder);
}
