/**
 * The dashboard on the admin port, `/dashboard/`: one page, one script, one
 * style sheet, and their permissions. A browser that is not signed in is only
 * told the command to type.
 *
 * All data come from the admin API, with the caller's rights.
 *
 * @module
 */

import {
  type AdminDoor,
  type AdminWho,
  whoIf,
} from "../../net/admin/admin_api.ts";
import { DASHBOARD_PATH } from "../../net/admin/admin_sessions.ts";
import type { HttpHandler } from "../../net/admin/http_port.ts";
import { LICENCES, SCRIPT, SOURCES, STYLE } from "./generated_page.ts";

/**
 * No content of other sites, no inline code, no frames: code that a peer could
 * smuggle into the page could not run, and could send nothing.
 */
const HEADERS: Readonly<Record<string, string>> = {
  "content-security-policy": "default-src 'self'; base-uri 'none'; " +
    "form-action 'none'; frame-ancestors 'none'; object-src 'none'; " +
    "require-trusted-types-for 'script'",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
  "permissions-policy": "camera=(), geolocation=(), microphone=()",
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff",
  "x-frame-options": "DENY",
};

const ICON = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32">` +
  `<rect width="32" height="32" rx="7" fill="#1c5ab5"/>` +
  `<path d="M6 25V18a10 10 0 0 1 20 0v7M12 25v-7a4 4 0 0 1 8 0v7" ` +
  `fill="none" stroke="#fff" stroke-width="2.6" stroke-linecap="round"/></svg>`;

interface Asset {
  readonly type: string;
  readonly text: string;
  packed?: Promise<Uint8Array<ArrayBuffer>>;
}

/** Names contain the sources' hash, so their content never changes. */
const SCRIPT_NAME = `page.${SOURCES}.js`;
const STYLE_NAME = `page.${SOURCES}.css`;

const ASSETS: ReadonlyMap<string, Asset> = new Map<string, Asset>([
  [SCRIPT_NAME, { type: "text/javascript; charset=utf-8", text: SCRIPT }],
  [STYLE_NAME, { type: "text/css; charset=utf-8", text: STYLE }],
  ["icon.svg", { type: "image/svg+xml", text: ICON }],
  ["licences.txt", { type: "text/plain; charset=utf-8", text: LICENCES }],
]);

/**
 * The dashboard for callers that came by `door`; `others` get the other paths.
 */
export function withDashboard(
  door: AdminDoor,
  others: HttpHandler,
): HttpHandler {
  return async (request, peer) => {
    const who = () => whoIf(door, request, peer);
    return await dashboardAnswer(request, who) ?? await others(request, peer);
  };
}

/**
 * @param who The caller; `undefined`: not signed in.
 * @returns `undefined` when the path is not the dashboard's.
 */
export async function dashboardAnswer(
  request: Request,
  who: () => AdminWho | undefined,
): Promise<Response | undefined> {
  const { pathname } = new URL(request.url);
  if (pathname === DASHBOARD_PATH.slice(0, -1)) {
    return text(308, "", { location: DASHBOARD_PATH });
  }
  if (!pathname.startsWith(DASHBOARD_PATH)) return undefined;
  if (request.method !== "GET" && request.method !== "HEAD") {
    return text(405, "only GET and HEAD are answered here\n", {
      allow: "GET, HEAD",
    });
  }
  const name = pathname.slice(DASHBOARD_PATH.length);
  if (name === "") return page(who());
  const asset = ASSETS.get(name);
  if (asset === undefined) return text(404, "404 page not found\n");
  return await assetAnswer(name, asset, request.headers);
}

function page(who: AdminWho | undefined): Response {
  const isKnown = who !== undefined;
  return text(isKnown ? 200 : 401, isKnown ? appPage(who) : LOGIN_PAGE, {
    "content-type": "text/html; charset=utf-8",
    "cache-control": "no-store",
    "vary": "cookie",
  });
}

/** A role is one of two words of ours, so no peer's text gets in here. */
function appPage({ role }: AdminWho): string {
  return html(
    `data-role="${role === "operate" ? "operate" : "view"}"`,
    `<div id="app"><p class="boot">Loading …</p></div>` +
      `<noscript><p class="boot">The dashboard is a script; without one, ` +
      `<code>tunnel status</code> and <code>tunnel top</code> say the same.` +
      `</p></noscript>`,
  );
}

const LOGIN_PAGE = html(
  `data-page="login"`,
  `<main class="login"><h1>tunnel</h1><p>To open the dashboard, type this on ` +
    `the machine of the server:</p><pre><code>tunnel dashboard</code></pre>` +
    `<p>It prints a link that is good once, for a minute.</p>` +
    `<p id="problem" role="alert"></p></main>`,
);

function html(attributes: string, body: string): string {
  return `<!doctype html><html lang="en" ${attributes}><head>` +
    `<meta charset="utf-8"><title>tunnel</title>` +
    `<meta name="viewport" content="width=device-width, initial-scale=1">` +
    `<link rel="icon" href="icon.svg" type="image/svg+xml">` +
    `<link rel="stylesheet" href="${STYLE_NAME}">` +
    `<script type="module" src="${SCRIPT_NAME}"></script>` +
    `</head><body>${body}</body></html>\n`;
}

async function assetAnswer(
  name: string,
  asset: Asset,
  asked: Headers,
): Promise<Response> {
  const etag = `"${SOURCES}"`;
  const isNamed = name.includes(SOURCES);
  const headers = {
    ...HEADERS,
    etag,
    "cache-control": isNamed
      ? "public, max-age=31536000, immutable"
      : "public, max-age=3600",
    "content-type": asset.type,
    "vary": "accept-encoding",
  };
  if ((asked.get("if-none-match") ?? "").includes(etag)) {
    return new Response(null, { status: 304, headers });
  }
  if (!/\bgzip\b/.test(asked.get("accept-encoding") ?? "")) {
    return new Response(asset.text, { headers });
  }
  asset.packed ??= pack(asset.text);
  return new Response(await asset.packed, {
    headers: { ...headers, "content-encoding": "gzip" },
  });
}

/** Once: they are the same as long as the server lives. */
async function pack(content: string): Promise<Uint8Array<ArrayBuffer>> {
  const stream = new Blob([content]).stream()
    .pipeThrough(new CompressionStream("gzip"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

function text(
  status: number,
  body: string,
  headers: Readonly<Record<string, string>> = {},
): Response {
  return new Response(body === "" ? null : body, {
    status,
    headers: {
      ...HEADERS,
      "content-type": "text/plain; charset=utf-8",
      ...headers,
    },
  });
}
