import { assertEquals } from "@std/assert";
import { FakeTimers } from "../../../tests/support/memory/fake_timers.ts";
import { RecordedLog } from "../../../tests/support/watch/recorded_log.ts";
import { MetricRegistry } from "../../../platform/metrics/metrics.ts";
import type { CertificateTerm, Renewal } from "./credentials.ts";
import { ExpiryWatch, SHOWN_CERTIFICATES_MAX } from "./expiry.ts";

const DAY_MS = 24 * 3600_000;
const START_MS = Date.UTC(2026, 0, 1);

function term(
  subject: string,
  lifeDays: number,
  leftDays: number,
): CertificateTerm {
  const notAfterMs = START_MS + leftDays * DAY_MS;
  const notBeforeMs = notAfterMs - lifeDays * DAY_MS;
  const fingerprint = `${subject} ${leftDays}`;
  const issuer = "ca";
  return {
    ...{ role: "leaf", subject, issuer, fingerprint },
    ...{ notBeforeMs, notAfterMs },
  };
}

function stage(...terms: CertificateTerm[]) {
  const timers = new FakeTimers();
  const start = timers.now();
  const metrics = new MetricRegistry();
  const log = new RecordedLog();
  const expiry = new ExpiryWatch({
    log,
    timers,
    metrics,
    prefix: "t_",
    now: () => START_MS + timers.now() - start,
  });
  const source = { kind: "frontend", renewal: "by hand" as Renewal, terms };
  expiry.add(source);
  expiry.check();
  return {
    expiry,
    source,
    timers,
    metrics,
    after: (days: number) => {
      timers.advance(days * DAY_MS);
      return log.take().map((line) => line.replace(/, on .*/, ""));
    },
  };
}

Deno.test("the end of a certificate is reported at 30, 7 and 1 days, once each", () => {
  const { expiry, after } = stage(term("tunnel-server", 365, 40));
  const warning = (left: string) => [
    `warn: frontend: the certificate tunnel-server expires in ${left}`,
  ];
  assertEquals(after(9.99), []);
  assertEquals(expiry.notes, []);
  assertEquals(after(0.02), warning("30 days"));
  assertEquals(after(22.98), []);
  assertEquals(after(0.02), warning("7 days"));
  assertEquals(after(5.98), []);
  assertEquals(after(0.02), warning("24 h"));
  expiry.check();
  assertEquals(after(0.5), []);
  assertEquals(after(1), [
    "warn: frontend: the certificate tunnel-server expired on " +
    "2026-02-10T00:00:00.000Z; peers refuse it: renew it",
  ]);
  assertEquals(after(100), []);
  assertEquals(expiry.notes.length, 1);
});

Deno.test("nobody is told to renew what renews itself", () => {
  const { expiry, source, after } = stage(
    term("node:edge-7", 8, 2),
    { ...term("tunnel CA", 3650, 2), role: "authority" },
  );
  source.renewal = "by itself";
  after(1);
  const remedies = () => expiry.notes.map((note) => note.split(/Z[:;] /)[1]);
  const words = "renewed itself; the log names the obstacle";
  assertEquals(remedies(), [`it should have ${words}`, "renew it"]);
  after(1.1);
  assertEquals(remedies(), [
    "it renews itself before it is shown; the log names the obstacle",
    "peers refuse it: renew it",
  ]);
});

Deno.test("who starts late is told the most urgent only", () => {
  const { after } = stage(term("one", 365, 0.5), term("gone", 365, -1));
  assertEquals(after(0.1), [
    "warn: frontend: the certificate one expires in 12 h",
  ]);
});

Deno.test("those that renew themselves in time are not spoken of", () => {
  const { source, expiry, after } = stage(term("node", 7, 7));
  assertEquals(after(4.6), []);
  source.terms = [term("node", 7, 11.6)];
  expiry.check();
  assertEquals(after(4.6), []);
  // Nobody renewed it.
  assertEquals(after(2), [
    "warn: frontend: the certificate node expires in 24 h",
  ]);
});

Deno.test("a scrape shows when each certificate ends, of many the first", () => {
  const { source, metrics } = stage(term("a", 365, 10), term("a", 365, 5));
  const seconds = (days: number) => (START_MS + days * DAY_MS) / 1000;
  const lines = () =>
    metrics.expose().split("\n").filter((line) => line.startsWith("t_"));
  assertEquals(lines(), [
    't_certificate_expiry_timestamp_seconds{kind="frontend",role="leaf",subject="a"} ' +
    seconds(5),
  ]);
  source.terms = Array.from(
    { length: 100 },
    (_, index) => term(`n${index}`, 365, 100 - index),
  );
  assertEquals(lines().length, SHOWN_CERTIFICATES_MAX);
  assertEquals(lines().at(0)!.endsWith(` ${seconds(1)}`), true);
});

Deno.test("nothing is reported after the end", () => {
  const { expiry, timers, after } = stage(term("one", 365, 40));
  expiry.close();
  assertEquals(timers.pendingCount, 0);
  assertEquals(after(60), []);
});
