/**
 * What axe-core finds on a page.
 *
 * @module
 */

import axe from "axe-core";
import type { Page } from "playwright-core";

/** Findings of axe that keep somebody from using the page, one line each. */
export async function seriousFaults(page: Page): Promise<string[]> {
  await page.evaluate(axe.source);
  return await page.evaluate(`axe.run(document).then(({ violations }) =>
    violations
      .filter(({ impact }) => impact === "serious" || impact === "critical")
      .map(({ id, nodes }) => id + ": " + nodes.slice(0, 3)
        .map((node) => node.html.slice(0, 160) + " " +
          node.any.map(({ message }) => message).join("; ").slice(0, 160))
        .join(" | ")))`) as string[];
}
