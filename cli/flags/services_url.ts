/**
 * `--services-url`, and how its server is believed and asked.
 *
 * @module
 */

import {
  HttpSource,
  type HttpSourceAccess,
} from "../../catalog/sources/http.ts";
import { TlsFiles } from "../../neighbours/kubernetes/tls_files.ts";
import { TokenFile } from "../../neighbours/kubernetes/token_file.ts";
import { isLoopbackHost } from "../../proto/peer/ip_address.ts";
import type { Clock, Timers } from "../../proto/sync/clock.ts";
import { UsageError } from "../usage_error.ts";
import { durationFlag, fileFlag, type FlagValues, textFlag } from "./flag.ts";

const GROUP = "Sources of services";

/** More often is a watch, which HTTP has not. */
const INTERVAL_MS_MIN = 500;

/** See the module description. */
export const SERVICES_URL_FLAGS = {
  "services-url": textFlag("", {
    group: GROUP,
    placeholder: "URL",
    help: "The same from there, asked for again and again.",
  }),
  "services-ca-cert": fileFlag({
    group: GROUP,
    help: "CA of its server's certificate; read again when it changes.",
    defaultText: "public ones",
  }),
  "services-token-file": fileFlag({
    group: GROUP,
    help:
      "Show that server the bearer token in this file; https or loopback. " +
      "Read again when it changes.",
  }),
  "services-interval": durationFlag(10_000, INTERVAL_MS_MIN, {
    group: GROUP,
    help: "Time between two questions, a tenth more or less.",
  }),
} as const;

type Values = FlagValues<typeof SERVICES_URL_FLAGS>;

/** What tells one such source from another. */
export interface UrlSource {
  readonly source: HttpSource;
  readonly url: string;
}

/**
 * @returns `undefined` when there is no URL.
 * @throws {UsageError} One line; {@linkcode KubernetesConfigError} for a file.
 */
export function urlSource(
  values: Values,
  tools: { readonly timers: Timers; readonly random: () => number },
): UrlSource | undefined {
  const text = values["services-url"];
  if (text === "") {
    const odd = FILES.find((name) => values[name] !== "");
    if (odd === undefined) return undefined;
    throw new UsageError(
      `Cannot use --${odd} without --services-url: it is about the server ` +
        "there; give the URL, or remove it",
    );
  }
  const url = urlOf(text);
  const access = accessOf(values, url, tools.timers);
  const source = new HttpSource({
    url: text,
    intervalMs: values["services-interval"],
    ...access === undefined ? {} : { access },
    ...tools,
  });
  return { source, url: text };
}

const FILES = ["services-ca-cert", "services-token-file"] as const;

function urlOf(text: string): URL {
  if (/^https?:\/\//.test(text) && URL.canParse(text)) return new URL(text);
  throw new UsageError(
    `Cannot use --services-url: saw "${text}", wanted http://… or https://…`,
  );
}

function accessOf(
  values: Values,
  url: URL,
  clock: Clock,
): HttpSourceAccess | undefined {
  const ca = values["services-ca-cert"];
  const token = values["services-token-file"];
  if (ca === "" && token === "") return undefined;
  if (ca !== "" && url.protocol === "http:") {
    throw new UsageError(
      "Cannot use --services-ca-cert with http: it has no TLS; write " +
        `https://${url.host}…, or remove the CA`,
    );
  }
  if (token !== "") checkTokenRoad(url);
  const tls = ca === "" ? undefined : new TlsFiles({ ca }, clock);
  const file = token === "" ? undefined : new TokenFile(token, clock);
  return {
    authority: () => tls?.current.ca,
    ...file === undefined ? {} : { token: () => file.current() },
    rejected: () => {
      tls?.expire();
      file?.expire();
    },
  };
}

/** @throws {UsageError} */
function checkTokenRoad(url: URL): void {
  if (url.username !== "") {
    throw new UsageError(
      "Cannot use --services-token-file with a name or password in " +
        "--services-url: the server is shown one or the other; keep one",
    );
  }
  if (url.protocol === "https:" || isLoopbackHost(url.hostname)) return;
  throw new UsageError(
    "Cannot use --services-token-file with http: everybody on the way would " +
      `read the token; write https://${url.host}…`,
  );
}
