/**
 * Certificates, the soonest to expire first.
 *
 * @module
 */

import type { VNode } from "preact";
import { ADMIN_PATHS } from "../../proto/admin/api.ts";
import type { CertificatesAnswer } from "../../proto/admin/list_answers.ts";
import { type Column, whenText } from "../view/cells.ts";
import { expiryCell } from "../view/status.ts";
import { ViewFacts } from "./cell.tsx";
import { askedList } from "./list_view.tsx";
import { PanelTitle } from "./marks.tsx";
import { clock } from "./server_state.ts";
import { gridColumns } from "./virtual_grid.tsx";

type Certificate = CertificatesAnswer["certificates"][number];

const COLUMNS: readonly Column<Certificate>[] = [
  { heading: "USE", of: ({ use }) => use },
  { heading: "EXPIRES IN", of: expiry },
  { heading: "RENEWED", of: ({ renewal }) => renewal },
  { heading: "GOOD FROM", of: ({ notBefore }) => whenText(notBefore) },
  { heading: "GOOD UNTIL", of: ({ notAfter }) => whenText(notAfter) },
  { heading: "SUBJECT", of: ({ subject }) => subject },
  { heading: "ISSUER", of: ({ issuer }) => issuer },
  { heading: "PROBLEM", of: ({ problem = "" }) => problem },
];

/** See the module description. */
export const Certificates = askedList<Certificate, CertificatesAnswer>({
  ...{ view: "certificates", title: "Certificates" },
  ...{ path: ADMIN_PATHS.certificates, everyMs: 30_000 },
  find: ["a certificate", "use, subject"],
  choices: [
    { value: "", title: "all" },
    { value: "by hand", title: "renewed by hand" },
    { value: "problem", title: "with a problem" },
  ],
  columns: gridColumns(COLUMNS, {
    "USE": [150, 1, 2],
    "EXPIRES IN": [96, 1],
    "RENEWED": [84, 2],
    "SUBJECT": [150, 3, 2],
    "ISSUER": [130, 5, 1],
    "PROBLEM": [150, 4, 2],
  }),
  items: ({ certificates }) => certificates,
  nameOf: ({ use, subject, notAfter }) => `${use} ${subject} ${notAfter}`,
  rank: ({ notAfter }) => notAfter,
  isLike: ({ renewal, problem }, state) =>
    renewal === state || (state === "problem" && problem !== undefined),
  words: ({ use, subject }) => `${use} ${subject}`,
  narrow: ({ renewal }) => `renewed ${renewal}`,
  panel: (certificate) => <CertificatePanel certificate={certificate} />,
  none: "There is no certificate like that.",
});

function CertificatePanel(
  { certificate }: { readonly certificate: Certificate },
): VNode {
  return (
    <>
      <PanelTitle name={certificate.use} problem={certificate.problem} />
      <ViewFacts
        facts={COLUMNS.slice(1, -1).map(({ heading, of }) => ({
          name: heading,
          value: of(certificate, clock.value),
        }))}
      />
    </>
  );
}

function expiry({ notAfter, renewal }: Certificate, nowMs: number) {
  return expiryCell(notAfter, renewal, nowMs);
}
