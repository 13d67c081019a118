// deno-lint-ignore-file no-console -- a command that prints its results.
/**
 * Konnectivity's own integration tests with our programs: with our agent, with
 * our server, and with both.
 *
 * Usage: `deno task lab suite [--ours=agent,server,both] [--strict] [REGEX]`
 *
 * `--ours=none` runs them with nothing of ours, to see that they pass at all;
 * with `--strict` a skipped test is a failed one.
 * Needs Go, and root for a network namespace. Ends with
 * `N passed, N failed, N skipped`.
 *
 * @module
 */

import { parseArgs } from "@std/cli";
import { TextLineStream } from "@std/streams";
import { mustRun } from "../../tests/support/program/run.ts";
import { ourCommand } from "../../tests/support/program/tunnel.ts";
import { Tally } from "../../tests/support/watch/tally.ts";

const RUN = new URL("../peers/konnectivity-suite/run", import.meta.url)
  .pathname;

const ARRANGEMENTS: Readonly<Record<string, readonly string[]>> = {
  agent: ["agent"],
  server: ["server"],
  both: ["server", "agent"],
  none: [],
};

/**
 * A race inside the Go client (cancel against EOF) lets this one fail now and
 * then with Konnectivity on both ends: 1 run in 13.
 */
const RACY = "TestProxyHandle_TunnelContextCancelled_GRPC";
const RACY_ATTEMPTS = 3;

type Outcome = "PASS" | "FAIL" | "SKIP";

/** What one run of the suite said, test by test, with the lines below each. */
type Outcomes = Map<string, { outcome: Outcome; details: string[] }>;

/** Programs for SERVER and AGENT, which the suite splits at blanks. */
class Launchers {
  private constructor(readonly folder: string) {}

  static async make(): Promise<Launchers> {
    const folder = await Deno.makeTempDir({ prefix: "suite-" });
    for (const role of ["server", "agent"]) {
      const command = ourCommand(role)
        .map((word) => `'${word.replaceAll("'", `'\\''`)}'`).join(" ");
      const script = `#!/bin/sh\nexec ${command} "$@"\n`;
      await Deno.writeTextFile(`${folder}/${role}`, script, { mode: 0o755 });
    }
    return new Launchers(folder);
  }

  environment(roles: readonly string[]): Record<string, string> {
    return Object.fromEntries(
      roles.map((role) => [role.toUpperCase(), `${this.folder}/${role}`]),
    );
  }
}

async function runSuite(
  env: Record<string, string>,
  pattern: string,
): Promise<Outcomes> {
  const child = new Deno.Command(RUN, {
    args: [pattern],
    env,
    stdout: "piped",
    stderr: "inherit",
  }).spawn();
  const outcomes: Outcomes = new Map();
  let details: string[] = [];
  const lines = child.stdout
    .pipeThrough(new TextDecoderStream())
    .pipeThrough(new TextLineStream());
  for await (const line of lines) {
    const match = /^(PASS|FAIL|SKIP) (\S+)(.*)$/.exec(line);
    if (match !== null) {
      details = [match[3]!.trim()];
      const outcome = match[1] as Outcome;
      outcomes.set(match[2]!, { outcome, details });
    } else if (line.startsWith("     ")) details.push(line.trim());
    else if (line.startsWith("logs: ")) console.log(line);
  }
  const { code } = await child.status;
  if (outcomes.size === 0) {
    throw new Error(`the suite ended with ${code} and without a result`);
  }
  return outcomes;
}

async function runArrangement(
  name: string,
  env: Record<string, string>,
  pattern: string,
  isStrict: boolean,
  tally: Tally,
): Promise<void> {
  const outcomes = await runSuite(env, pattern);
  for (let attempt = 1; attempt < RACY_ATTEMPTS; attempt++) {
    if (outcomes.get(RACY)?.outcome !== "FAIL") break;
    const again = await runSuite(env, `^${RACY}$`);
    outcomes.set(RACY, again.get(RACY)!);
  }
  for (const [test, { outcome, details }] of outcomes) {
    const title = `suite with our ${name}: ${test}`;
    if (outcome === "PASS") tally.pass(`${title} (${details[0]})`);
    else if (outcome === "SKIP" && !isStrict) {
      tally.skip(title, details.join(" "));
    } else tally.fail(title, details.join("\n"));
  }
}

async function main(): Promise<number> {
  const flags = parseArgs(Deno.args, {
    boolean: ["strict"],
    string: ["ours"],
    default: { ours: "agent,server,both" },
  });
  const tally = new Tally();
  const launchers = await Launchers.make();
  // In there is no network, and nobody wants to wait until it is unpacked.
  if (flags.ours !== "none") await mustRun("version");
  for (const name of String(flags.ours).split(",")) {
    const roles = ARRANGEMENTS[name];
    if (roles === undefined) {
      console.error(`--ours knows ${Object.keys(ARRANGEMENTS).join(", ")}`);
      return 2;
    }
    const env = launchers.environment(roles);
    const pattern = String(flags._[0] ?? ".");
    await runArrangement(name, env, pattern, flags.strict === true, tally);
  }
  await Deno.remove(launchers.folder, { recursive: true });
  return tally.end();
}

if (import.meta.main) Deno.exit(await main());
