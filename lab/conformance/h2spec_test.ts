import { assertEquals } from "@std/assert";
import { Tally } from "../../tests/support/watch/tally.ts";
import { assess, readReport } from "./h2spec.ts";

const REPORT = `<?xml version="1.0" encoding="UTF-8"?>
<testsuites>
  <testsuite name="3.5. Preface" package="http2/3.5" tests="2">
    <testcase package="http2/3.5" classname="Sends a client preface" time="0.1"></testcase>
    <testcase package="http2/3.5" classname="Sends &#34;junk&#34;" time="0.0008">
      <error>Connection closed
Error: a frame</error>
    </testcase>
    <testcase package="http2/3.5" classname="Waits" time="0"><skipped></skipped></testcase>
  </testsuite>
</testsuites>`;

Deno.test("readReport() tells passed, failed and skipped cases apart", () => {
  assertEquals(readReport(REPORT), [
    {
      section: "http2/3.5",
      title: "Sends a client preface",
      outcome: "passed",
      details: "",
    },
    {
      section: "http2/3.5",
      title: 'Sends "junk"',
      outcome: "failed",
      details: "Connection closed\nError: a frame",
    },
    {
      section: "http2/3.5",
      title: "Waits",
      outcome: "skipped",
      details: "",
    },
  ]);
});

Deno.test("assess() counts an exception that passes as a failure", () => {
  const tally = new Tally(() => {});
  const exceptions = [
    { case: "http2/3.5: Sends a client preface", reason: "stale" },
    { case: 'http2/3.5: Sends "junk"', reason: "RFC 9113 §3.4" },
  ];
  assess("x", readReport(REPORT), exceptions, tally);
  // The stale exception, the case that h2spec itself skipped, and too few.
  assertEquals([tally.passed, tally.failed, tally.skipped], [0, 3, 1]);
});
