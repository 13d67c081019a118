/**
 * Which view is shown: `#/nodes/NAME?state=offline`. All of it is in the hash,
 * so that a place can be kept, sent and gone back to.
 *
 * @module
 */

import { type Signal, signal } from "@preact/signals";

/** One view, and its selected item. */
export interface Place {
  readonly view: string;
  /** The selected item, "" if none. */
  readonly name: string;
  readonly query: URLSearchParams;
}

/** The present place. */
export const place: Signal<Place> = signal(read(location.hash));

addEventListener("hashchange", () => {
  place.value = read(location.hash);
});

/** Goes there, as a link would. */
export function goTo(
  view: string,
  name = "",
  query?: Readonly<Record<string, string>>,
): void {
  location.hash = placeLink(view, name, query);
}

/** The `href` of a link to it. */
export function placeLink(
  view: string,
  name = "",
  query: Readonly<Record<string, string>> = {},
): string {
  const asked = new URLSearchParams(query).toString();
  return `#/${view}` +
    (name === "" ? "" : `/${encodeURIComponent(name.toWellFormed())}`) +
    (asked === "" ? "" : `?${asked}`);
}

function read(hash: string): Place {
  const [path = "", asked = ""] = split(hash.replace(/^#\/?/, ""), "?");
  const [view, name] = split(path, "/");
  return {
    view: view || "overview",
    name: decoded(name),
    query: new URLSearchParams(asked),
  };
}

function split(text: string, separator: string): [string, string] {
  const at = text.indexOf(separator);
  return at < 0 ? [text, ""] : [text.slice(0, at), text.slice(at + 1)];
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
