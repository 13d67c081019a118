/**
 * Debian's Chromium, driven by playwright-core, which brings no browser along.
 * Every page here fails its test when it asks any other host for anything, or
 * says an error on its console.
 *
 * @module
 */

import {
  type Browser,
  type BrowserContext,
  type BrowserContextOptions,
  chromium,
  type Page,
} from "playwright-core";

/** Where distributions put it. */
const CHROMIUM = Deno.env.get("CHROMIUM") ?? "/usr/bin/chromium";

/** A browser for one test file. */
export function openBrowser(): Promise<Browser> {
  return chromium.launch({
    executablePath: CHROMIUM,
    // Root, as in a container, has no sandbox of Chromium's.
    args: [
      "--no-sandbox",
      "--disable-background-networking",
      "--disable-component-update",
    ],
  });
}

/** A page, and what it did that it must not do. */
export class Visit implements AsyncDisposable {
  /** Requests to other hosts, blocked. */
  readonly foreign: string[] = [];
  /** Errors of scripts and of the security policy. */
  readonly errors: string[] = [];

  private constructor(
    private readonly context: BrowserContext,
    readonly page: Page,
  ) {}

  /** @param link As `tunnel dashboard` prints it. */
  static async open(
    browser: Browser,
    link: string,
    options: BrowserContextOptions = {},
  ): Promise<Visit> {
    const context = await browser.newContext({
      viewport: { width: 1280, height: 800 },
      ...options,
    });
    const visit = new Visit(context, await context.newPage());
    await visit.#watch(new URL(link).origin);
    await visit.page.goto(link);
    return visit;
  }

  /** Nothing that it must not do was done. */
  check(): void {
    const { foreign, errors } = this;
    if (foreign.length + errors.length === 0) return;
    throw new Error(`The page did: ${[...foreign, ...errors].join("; ")}`);
  }

  /** Goes to a view and waits until it has data. */
  async goTo(view: string): Promise<void> {
    await this.page.evaluate(`location.hash = ${JSON.stringify(`#/${view}`)}`);
    const name = view.split(/[/?]/)[0];
    await this.page.locator(`main.view-${name}`).waitFor();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.context.close();
  }

  async #watch(own: string): Promise<void> {
    await this.context.route((url) => url.origin !== own, (route) => {
      this.foreign.push(`asked ${route.request().url()}`);
      return route.abort();
    });
    this.page.on("pageerror", (error) => this.errors.push(`${error.stack}`));
    this.page.on("console", (message) => {
      // What is not found or not allowed is said on the page as well.
      const isAnswer = message.text().startsWith("Failed to load resource");
      if (message.type() === "error" && !isAnswer) {
        this.errors.push(message.text());
      }
    });
  }
}
