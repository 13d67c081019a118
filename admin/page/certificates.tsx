/**
 * Certificates, the soonest to expire first.
 *
 * @module
 */

import { signal } from "@preact/signals";
import type { VNode } from "preact";
import { useMemo } from "preact/hooks";
import { ADMIN_PATHS } from "../../proto/admin/api.ts";
import type { CertificatesAnswer } from "../../proto/admin/list_answers.ts";
import { useAsked } from "./asked.ts";
import { type FilterChoice, Filters, Search } from "./filters.tsx";
import { Fact, Facts, Nothing, Said, Until } from "./marks.tsx";
import { peerText } from "./peer_text.ts";
import { goTo, place } from "./place.ts";
import { SplitView } from "./split_view.tsx";
import { countText } from "../../platform/text/quantities.ts";
import { timeText } from "./units.ts";
import { type Column, VirtualGrid } from "./virtual_grid.tsx";

type Certificate = CertificatesAnswer["certificates"][number];

const AGAIN_MS = 30_000;
const search = signal("");

const COLUMNS: readonly Column<Certificate>[] = [
  {
    ...{ id: "use", title: "Use", width: 150, grows: 2, need: 1 },
    cell: ({ use }) => <Said text={use} />,
  },
  {
    ...{ id: "expires", title: "Expires", width: 132, need: 1 },
    cell: (certificate) => <End {...{ certificate }} />,
  },
  {
    ...{ id: "renewal", title: "Renewed", width: 84, need: 2 },
    cell: ({ renewal }) => renewal,
  },
  {
    ...{ id: "subject", title: "Subject", width: 150, grows: 2, need: 3 },
    cell: ({ subject }) => <Said text={subject} />,
  },
  {
    ...{ id: "issuer", title: "Issuer", width: 130, grows: 1, need: 5 },
    cell: ({ issuer }) => <Said text={issuer} />,
  },
  {
    ...{ id: "problem", title: "Problem", width: 150, grows: 2, need: 4 },
    cell: ({ problem }) => <Said text={problem ?? ""} />,
  },
];

const CHOICES: readonly FilterChoice[] = [
  { value: "", title: "all" },
  { value: "by hand", title: "renewed by hand" },
  { value: "problem", title: "with a problem" },
];

/** See the module description. */
export function Certificates(): VNode {
  const asked = useAsked<CertificatesAnswer>(
    ADMIN_PATHS.certificates,
    AGAIN_MS,
  );
  const { name, query } = place.value;
  const state = query.get("state") ?? "";
  const text = search.value.trim().toLowerCase();
  const all = asked.kind === "known" ? asked.answer.certificates : [];
  const byKey = useMemo(() => new Map(all.map((one) => [keyOf(one), one])), [
    all,
  ]);
  const keys = useMemo(
    () =>
      [...byKey].filter(([, { use, subject, renewal, problem }]) =>
        (state === "" || renewal === state ||
          (state === "problem" && problem !== undefined)) &&
        (text === "" || `${use} ${subject}`.toLowerCase().includes(text))
      ).map(([key]) => key),
    [byKey, state, text],
  );
  const open = byKey.get(name);
  const kept = Object.fromEntries(query);
  return (
    <SplitView
      title="Certificates"
      isOpen={name !== ""}
      panel={open
        ? <CertificatePanel certificate={open} />
        : <Nothing>There is no such certificate any more.</Nothing>}
      onClose={() => goTo("certificates", "", kept)}
      tools={
        <>
          <Search
            label="Find a certificate"
            hint="use, subject"
            text={search}
          />
          <Filters label="Renewal" choices={CHOICES} chosen={state} />
          <p class="tally" role="status">
            {countText(keys.length)} of {countText(all.length)}
          </p>
        </>
      }
    >
      <VirtualGrid<Certificate>
        label="Certificates"
        columns={COLUMNS}
        keys={keys}
        get={(key) => byKey.get(key)}
        onOpen={(key) => goTo("certificates", key, kept)}
        openKey={name}
        narrow={({ renewal }) => `renewed ${renewal}`}
        empty={asked.kind === "failed"
          ? peerText(asked.message)
          : asked.kind === "waiting"
          ? "Waiting for the server …"
          : "There is no certificate like that."}
      />
    </SplitView>
  );
}

function End({ certificate }: { readonly certificate: Certificate }): VNode {
  const { notAfter, renewal } = certificate;
  return (
    <span class={renewal === "by itself" ? "is-later" : ""}>
      <Until at={notAfter} />
    </span>
  );
}

function CertificatePanel(
  { certificate }: { readonly certificate: Certificate },
): VNode {
  const { notBefore, notAfter } = certificate;
  return (
    <>
      <h2 class="panel-title">
        <Said text={certificate.use} />
      </h2>
      {certificate.problem && (
        <p class="problem is-bad">
          <Said text={certificate.problem} />
        </p>
      )}
      <Facts>
        <Fact name="Expires">
          <End certificate={certificate} />
        </Fact>
        <Fact name="Renewed">{certificate.renewal}</Fact>
        <Fact name="Good from">{timeYear(notBefore)}</Fact>
        <Fact name="Good until">{timeYear(notAfter)}</Fact>
        <Fact name="Subject">
          <Said text={certificate.subject} />
        </Fact>
        <Fact name="Issuer">
          <Said text={certificate.issuer} />
        </Fact>
      </Facts>
    </>
  );
}

function timeYear(at: string): string {
  return `${at.slice(0, 4)}, ${timeText(at)}`;
}

function keyOf({ use, subject, notAfter }: Certificate): string {
  return `${use} ${subject} ${notAfter}`;
}
