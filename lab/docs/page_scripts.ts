/**
 * How the lines of each page are run. What stands in between is what the page
 * says in words, or takes for granted: files, certificates, an etcd.
 *
 * @module
 */

import type { PageScript } from "./page_run.ts";
import { SERVICE_PAGES } from "./service_pages.ts";
import { STATE_PAGES } from "./state_pages.ts";
import { WATCH_PAGES } from "./watch_pages.ts";

export const PAGE_SCRIPTS: Readonly<Record<string, PageScript>> = {
  ...WATCH_PAGES,
  ...SERVICE_PAGES,
  ...STATE_PAGES,
};
