/**
 * The sources of names, and their order: the line `hosts:` of a
 * nsswitch.conf(5) file, as far as it can be done here. What cannot (LDAP, NIS,
 * mDNS and so on) is left to the platform, which has the C library do it.
 *
 * @module
 */

import { wordsOf } from "./hosts_file.ts";
import { isIn } from "./host_name.ts";

/**
 * `platform`: everything from here on. The platform looks in the sources before
 * it again, which does no harm.
 */
export type NameSource = "files" | "dns" | "platform";

/** What the sources of a name depend on, besides the file. */
export interface NameSurroundings {
  /** Our own name, which `myhostname` knows. */
  readonly hostname: string;
  /** The name servers are systemd-resolved's stub: asking it is `resolve`. */
  readonly asksStub: boolean;
  /** `/etc/mdns.allow` is there: mDNS may be used for any name. */
  readonly hasMdnsAllow: boolean;
}

/** As the C library does where there is no such file. */
const USUAL = ["files", "dns"];

/** The decision of a source that may be skipped, or stands for another. */
type SourceRule = (
  name: string,
  around: NameSurroundings,
) => NameSource | "skip";

const SOURCE_RULES: ReadonlyMap<string, SourceRule> = new Map<
  string,
  SourceRule
>([
  ["files", () => "files"],
  ["dns", () => "dns"],
  ["myhostname", knowsItself],
  // Containers of this machine, whose names have no dots.
  ["mymachines", (name) => name.includes(".") ? "skip" : "platform"],
  [
    "resolve",
    (name, { asksStub }) =>
      asksStub && name.includes(".") && !isIn(name, "local")
        ? "dns"
        : "platform",
  ],
]);

/** @param text `undefined`: there is no such file. */
export function nameSourcesOf(
  text: string | undefined,
  name: string,
  around: NameSurroundings,
): NameSource[] {
  const sources: NameSource[] = [];
  let found: NameSource | "skip" = "skip";
  for (const word of hostsLine(text ?? "") ?? USUAL) {
    if (word.startsWith("[")) {
      // Of a source that was left out; or the default action.
      if (found === "skip" || USUAL_ACTIONS.has(word)) continue;
      found = "platform";
    } else found = (SOURCE_RULES.get(word) ?? ruleOf(word))(name, around);
    if (found !== "skip" && !sources.includes(found)) sources.push(found);
    if (found === "platform") break;
  }
  return sources;
}

/** Its words, an action with its brackets being one; `undefined`: no such line. */
function hostsLine(text: string): string[] | undefined {
  for (const line of text.split("\n")) {
    const match = /^\s*hosts:(.*)$/.exec(line.replace(/#.*/, ""));
    if (match === null) continue;
    const spaced = match[1]!.replaceAll(
      /\[([^\]]*)\]/g,
      (_, inside: string) => ` [${inside.trim().replaceAll(/\s+/g, ",")}] `,
    );
    return wordsOf(spaced.toLowerCase());
  }
  return undefined;
}

function ruleOf(source: string): SourceRule {
  if (!/^mdns[46]?(?:_minimal)?$/.test(source)) return () => "platform";
  return (name, { hasMdnsAllow }) =>
    isIn(name, "local") || (hasMdnsAllow && !source.endsWith("_minimal"))
      ? "platform"
      : "skip";
}

function knowsItself(
  name: string,
  { hostname }: NameSurroundings,
): NameSource | "skip" {
  const known = [hostname.toLowerCase(), "_gateway", "_outbound"];
  return known.includes(name) ? "platform" : "skip";
}

/** Others are the C library's affair. */
const USUAL_ACTIONS: ReadonlySet<string> = new Set([
  "[success=return]",
  "[notfound=continue]",
  "[unavail=continue]",
  "[tryagain=continue]",
  "[!unavail=return]",
]);
