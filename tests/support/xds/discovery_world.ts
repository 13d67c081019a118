/**
 * One client and one server of discovery with a slow connection between them, and
 * all that must hold on it whatever happens: for property tests.
 *
 * The server is the state of a stream; the client is a model. Requests and
 * responses wait on the way until the test delivers them.
 *
 * @module
 */

import type { DiscoveryRequest } from "../../../proto/xds/discovery.ts";
import {
  isWholeState,
  kindOfUrl,
  type Resource,
  RESOURCE_KINDS,
  type ResourceKind,
} from "../../../proto/xds/resource.ts";
import { REMOVAL_GRACE_MS } from "../../../services/discovery/subscriptions/removals.ts";
import {
  type OutgoingResponse,
  XdsStreamState,
} from "../../../services/discovery/subscriptions/xds_stream_state.ts";
import { ANSWER_WAIT_MS } from "../../../services/discovery/subscriptions/ack_tracker.ts";
import type { View } from "../../../services/discovery/view/view.ts";
import { DiscoveryModel, type ModelCharacter } from "./discovery_model.ts";
import { resourceOf, textOf } from "./scripted_subscriber.ts";

/** What the server told of one kind on this stream, and why it may tell more. */
class Ledger {
  openNonce = "";
  openSinceMs = 0;
  lastNonce = "";
  /** By name: the version that was sent last. */
  readonly sent = new Map<string, string>();
  /** Names that were ever refused, as far as it was said. */
  readonly everRefused = new Set<string>();
  /** Names in responses that the client ever acknowledged. */
  readonly acked = new Set<string>();
  /** Names that were ever sent. */
  readonly reported = new Set<string>();
  /** The last whole state. */
  whole = "";
  /** The client asked for something since the last response. */
  isAsked = true;
  names: readonly string[] | undefined;
  /** The client came with a state of an earlier stream. */
  hasPast = false;
  /** Delta: by name. */
  readonly subscribed = new Set<string>();
  /** Names that it asked for anew since then. */
  readonly anew = new Set<string>();
  /** Names that changed since they were sent. */
  readonly touched = new Set<string>();
  /** Endpoints whose cluster was told anew. */
  readonly forced = new Set<string>();
  /** Names in the last response. */
  last: readonly string[] = [];
  /** Names that it told as gone beside those. */
  lastRemoved: readonly string[] = [];
  /** By name: the version that the client refused, as far as it can be known. */
  readonly refused = new Map<string, string>();
  /** `name=version` of all that was ever refused beside others. */
  readonly everSuspects = new Set<string>();
  /** The same of what was refused beside others, and nobody knows which is bad. */
  readonly suspects = new Map<string, string>();

  forget(name: string): void {
    this.refused.delete(name);
    this.suspects.delete(name);
  }

  forgetAllBut(names: ReadonlySet<string>): void {
    for (const name of [...this.refused.keys(), ...this.suspects.keys()]) {
      if (!names.has(name)) this.forget(name);
    }
  }
}

function ledgers(): Record<ResourceKind, Ledger> {
  return {
    cluster: new Ledger(),
    endpoints: new Ledger(),
    listener: new Ledger(),
    route: new Ledger(),
    service: new Ledger(),
  };
}

/** What leads to clusters; here to those of its own name. */
const LED: ReadonlySet<ResourceKind> = new Set(["listener", "route"]);

/** By kind and name: versions. */
export type Catalog = Record<ResourceKind, Map<string, string>>;

/** See the module description. */
export class DiscoveryWorld {
  readonly model: DiscoveryModel;
  readonly log: string[] = [];
  nowMs = 0;
  /** The time before it passed last: all that was due since is due at once. */
  #beforeMs = 0;
  #state!: XdsStreamState;
  #view: View | undefined;
  #ledgers = ledgers();
  #streams = 0;
  readonly #up: DiscoveryRequest[] = [];
  readonly #down: OutgoingResponse[] = [];
  readonly #resources = new Map<string, Resource>();
  /** All listeners and routes that there ever were. */
  readonly #recent = new Set<string>();
  /** Since when a cluster is not in the view. */
  readonly #goneSinceMs = new Map<string, number>();
  /** By nonce: clusters that had not been gone for long when it was sent. */
  readonly #justGone = new Map<string, ReadonlySet<string>>();
  #delivered = "";

  constructor(private readonly character: ModelCharacter) {
    this.model = new DiscoveryModel(
      character,
      (request) => this.#up.push(request),
      (name) => this.#onClusterGone(name),
    );
    this.reconnect();
  }

  get isQuiet(): boolean {
    return this.#up.length === 0 && this.#down.length === 0;
  }

  get dueMs(): number {
    return this.#state.dueMs;
  }

  // --- What happens ----------------------------------------------------------

  /** The stream breaks, or the server starts anew: to it that is the same. */
  reconnect(): void {
    this.log.push("reconnect");
    this.#up.length = 0;
    this.#down.length = 0;
    this.#ledgers = ledgers();
    this.#goneSinceMs.clear();
    this.#state = new XdsStreamState({
      mode: this.character.mode,
      noncePrefix: `${++this.#streams}.`,
    });
    if (this.#view !== undefined) this.#state.onView(this.#view, this.nowMs);
    this.model.connect();
  }

  /** @param isStalled The transport takes nothing, so nobody asks what to send. */
  publish(catalog: Catalog, isStalled = false): void {
    const before = this.#view;
    const mapOf = (kind: ResourceKind) =>
      new Map(
        [...catalog[kind]].map(([name, version]) => [
          name,
          this.#resource(kind, name, version),
        ]),
      );
    const resources = {
      cluster: mapOf("cluster"),
      endpoints: mapOf("endpoints"),
      listener: mapOf("listener"),
      route: mapOf("route"),
      service: mapOf("service"),
    };
    this.#view = { resources };
    for (const kind of RESOURCE_KINDS) this.#touch(kind, before);
    this.log.push(
      `publish ${
        RESOURCE_KINDS.map((kind) =>
          `${kind} ${
            [...catalog[kind]].map(([name, version]) => `${name}=${version}`)
              .join(" ")
          }`
        ).join(", ")
      }`,
    );
    this.#state.onView(this.#view, this.nowMs);
    if (!isStalled) this.#pump();
  }

  pass(ms: number): void {
    this.#beforeMs = this.nowMs;
    this.nowMs += ms;
    this.log.push(`at ${this.nowMs}`);
    this.#pump();
    this.model.tick(this.nowMs);
  }

  /** @returns false when there is no request on its way. */
  deliverUp(): boolean {
    const request = this.#up.shift();
    if (request === undefined) return false;
    this.#note(request);
    this.#state.onRequest(request, this.nowMs);
    this.#pump();
    return true;
  }

  /** @returns false when there is no response on its way. */
  deliverDown(): boolean {
    const response = this.#down.shift();
    if (response === undefined) return false;
    this.log.push(`client receives ${textOf(response.kind, response.body)}`);
    this.#delivered = response.nonce;
    this.model.take(response, this.nowMs);
    return true;
  }

  /** All arrives, and time passes until nothing more happens. */
  settle(): void {
    for (let round = 0; round < 200; round++) {
      let messages = 0;
      while (this.deliverUp() || this.deliverDown()) {
        if (++messages > 2_000) throw new Error("It never ends");
      }
      if (round > 30 && this.dueMs === Infinity) return;
      this.pass(round > 20 ? 5_000 : 1_000);
    }
    throw new Error("Something is always due");
  }

  // --- What must hold --------------------------------------------------------

  /** At quiescence the client has what there is of what it asked for. */
  check(): void {
    const resources = this.#view?.resources;
    if (resources === undefined) return;
    for (const kind of RESOURCE_KINDS) {
      const mine = this.model.kinds[kind];
      const names = new Set([
        ...mine.has.keys(),
        ...resources[kind].keys(),
      ]);
      for (const name of names) {
        if (!mine.covers(name) || mine.tainted.has(name)) continue;
        const has = mine.has.get(name);
        const wanted = resources[kind].get(name)?.version;
        if (has === wanted) continue;
        // Of what it refuses it has whatever it had.
        const isRefused = wanted !== undefined &&
          (wanted.endsWith("!") || mine.blamed.has(`${name}=${wanted}`));
        if (isRefused) continue;
        const isSubset = this.character.mode === "sotw" &&
          !isWholeState(kind);
        if (wanted === undefined && isSubset) continue;
        throw new Error(`Client has ${kind} ${name}=${has}, wants ${wanted}`);
      }
    }
    for (const name of this.model.warming) {
      const version = resources.endpoints.get(name)?.version;
      if (version === undefined || version.endsWith("!")) continue;
      const { tainted, blamed } = this.model.kinds.endpoints;
      if (tainted.has(name) || blamed.has(`${name}=${version}`)) continue;
      throw new Error(`Cluster ${name} waits for endpoints`);
    }
    for (
      const { kind, inFlightSinceMs, isBehind } of this.#state.status.kinds
    ) {
      if (inFlightSinceMs !== undefined || isBehind) {
        throw new Error(`Something of ${kind} is never told, or answered`);
      }
    }
  }

  #onClusterGone(name: string): void {
    if (!this.#justGone.get(this.#delivered)?.has(name)) return;
    // It came back and said that it had nothing.
    const isSilent = this.character.mode === "sotw" && this.#streams > 1 &&
      !this.#ledgers.cluster.hasPast;
    // It may have one of an earlier stream in the place of what it refused, or
    // one that it never acknowledged.
    const { acked, hasPast, everRefused } = this.#ledgers.cluster;
    const isUnknown = hasPast || !acked.has(name);
    if (isSilent || (isUnknown && everRefused.has(name))) return;
    // The listener waits meanwhile, and what is refused is not kept for it.
    if (this.character.isLed && everRefused.has(name)) return;
    if (!this.model.kinds.listener.has.has(name)) return;
    if (this.model.kinds.listener.tainted.has(name)) return;
    throw new Error(`Cluster ${name} is gone before the listener`);
  }

  #touch(kind: ResourceKind, before: View | undefined): void {
    const old = before?.resources[kind];
    const now = this.#view!.resources[kind];
    const ledger = this.#ledgers[kind];
    for (const name of new Set([...old?.keys() ?? [], ...now.keys()])) {
      const version = now.get(name)?.version;
      if (kind === "cluster") this.#noteGone(name, old?.has(name) ?? false);
      if (old?.get(name)?.version === version) continue;
      ledger.touched.add(name);
      ledger.forget(name);
    }
  }

  #noteGone(name: string, wasThere: boolean): void {
    const isThere = this.#view!.resources.cluster.has(name);
    if (isThere) this.#goneSinceMs.delete(name);
    else if (wasThere) {
      const { cluster, listener } = this.#ledgers;
      // What went before the client asked, it may hear of in any order.
      const isLate = !cluster.reported.has(name) || listener.lastNonce === "";
      if (isLate) this.#goneSinceMs.delete(name);
      else this.#goneSinceMs.set(name, this.nowMs);
    }
  }

  #pump(): void {
    for (let count = 0;; count++) {
      const out = this.#state.next(this.nowMs);
      if (out === undefined) return;
      this.log.push(
        `server says ${textOf(out.kind, out.body)} (${out.nonce})`,
      );
      if (count > 20) throw new Error("The server never stops");
      this.#audit(out);
      this.#down.push(out);
    }
  }

  #note(request: DiscoveryRequest): void {
    const kind = kindOfUrl(request.typeUrl)!;
    const ledger = this.#ledgers[kind];
    const { responseNonce, errorDetail } = request;
    this.log.push(`client says ${kind} ${JSON.stringify(request)}`);
    const isStale = request.mode === "sotw" && ledger.lastNonce !== "" &&
      responseNonce !== "" && responseNonce !== ledger.lastNonce;
    if (isStale) {
      // What it does not ask for it has dropped, and may ask for anew.
      const still = new Set(
        request.mode === "sotw" ? request.resourceNames : [],
      );
      ledger.names = ledger.names?.filter((name) => still.has(name));
      const isAll = this.model.kinds[kind].isWildcard;
      if (!isAll) ledger.forgetAllBut(still);
      return;
    }
    const isAnswer = ledger.openNonce !== "" &&
      ledger.openNonce === responseNonce;
    if (isAnswer) {
      ledger.openNonce = "";
      if (errorDetail !== undefined) {
        this.#noteRefusal(kind, errorDetail.message);
      } else {
        for (const name of ledger.last) {
          ledger.suspects.delete(name);
          ledger.acked.add(name);
        }
      }
    }
    const names = request.mode === "sotw"
      ? request.resourceNames
      : request.subscribe;
    const before = new Set(ledger.names ?? []);
    const isMore = names.some((name) => !before.has(name));
    for (const name of names) {
      if (request.mode === "delta" || !before.has(name)) ledger.anew.add(name);
    }
    const isFirst = ledger.names === undefined;
    if (isFirst && request.mode === "sotw") {
      ledger.hasPast = request.versionInfo !== "";
    }
    const isRepeated = !isAnswer && names.length === before.size && !isMore;
    if (request.mode === "sotw") {
      ledger.isAsked ||= isFirst || isMore || isRepeated;
      ledger.names = names;
      const asked = new Set(names);
      const isAll = this.model.kinds[kind].isWildcard;
      if (!isAll) ledger.forgetAllBut(asked);
    } else {
      ledger.isAsked ||= isFirst || names.length > 0;
      ledger.names ??= [];
      for (const name of names) {
        if (!ledger.subscribed.has(name)) ledger.forget(name);
        ledger.subscribed.add(name);
      }
      for (const name of request.unsubscribe) ledger.subscribed.delete(name);
    }
  }

  #noteRefusal(kind: ResourceKind, message: string): void {
    const ledger = this.#ledgers[kind];
    const named = message.split(" ").slice(1);
    const isWhole = this.character.mode === "sotw" && isWholeState(kind);
    const blamed = named.length > 0 ? named : isWhole ? [] : ledger.last;
    const isSure = named.length > 0 || blamed.length === 1;
    for (const name of blamed) {
      ledger.everRefused.add(name);
      const version = ledger.sent.get(name);
      const wasSuspect = ledger.everSuspects.has(`${name}=${version}`);
      if (!isSure) ledger.everSuspects.add(`${name}=${version}`);
      const isNow = this.#view!.resources[kind].get(name)?.version === version;
      if (isWhole && ledger.hasPast) continue; // It may be repeated then.
      if (ledger.touched.has(name)) continue; // It went, and came back.
      // Who asks anew while the refused one is on its way is sent it again.
      if (version !== undefined && isNow && !ledger.anew.has(name)) {
        // A suspect that was tried again has a stand-in, even if it was gone.
        if (isSure && wasSuspect) ledger.forced.add(name);
        ledger.forget(name);
        const found = isSure ? ledger.refused : ledger.suspects;
        found.set(name, version);
      }
    }
    // It may have applied nothing of it.
    for (const name of ledger.lastRemoved) ledger.forced.add(name);
    // Nothing is known of the clusters in it: they are told anew.
    if (kind === "cluster") ledger.sent.clear();
  }

  #audit({ kind, body, nonce }: OutgoingResponse): void {
    const ledger = this.#ledgers[kind];
    const isOpen = ledger.openNonce !== "" &&
      this.nowMs < ledger.openSinceMs + ANSWER_WAIT_MS;
    if (isOpen) throw new Error(`Two responses of ${kind} in flight`);
    const names = body.resources.map(({ name }) => name);
    if (
      new Set([...names, ...body.removed]).size !==
        names.length + body.removed.length
    ) throw new Error("A name is there twice");
    for (const { name, version } of body.resources) {
      this.#auditContent(kind, name, version);
    }
    const { suspects } = this.#ledgers[kind];
    const tried = body.resources.filter(({ name, version }) =>
      suspects.get(name) === version
    );
    const isFollowed = !this.character.isLed || !LED.has(kind);
    if (tried.length > 0 && names.length > 1 && isFollowed) {
      throw new Error(`Suspects are not tried alone: ${names.join(" ")}`);
    }
    if (kind === "cluster") {
      const just = [...this.#goneSinceMs].filter(([name, sinceMs]) =>
        this.nowMs < sinceMs + REMOVAL_GRACE_MS && !ledger.anew.has(name)
      );
      this.#justGone.set(nonce, new Set(just.map(([name]) => name)));
    }
    const isWhole = this.character.mode === "sotw" && isWholeState(kind);
    if (isWhole) this.#auditWhole(ledger, body.resources);
    else this.#auditSome(kind, [...names, ...body.removed]);
    for (const { name, version } of body.resources) {
      const isUnknown = ledger.openNonce !== "";
      const isNew = isUnknown || ledger.isAsked || ledger.touched.has(name) ||
        ledger.sent.get(name) !== version;
      if (kind === "cluster" && isNew) this.#ledgers.endpoints.forced.add(name);
      ledger.sent.set(name, version);
      ledger.reported.add(name);
      const now = this.#view!.resources[kind].get(name)?.version;
      if (version === now) ledger.touched.delete(name);
      ledger.forced.delete(name);
    }
    for (const name of body.removed) {
      // It may be back in the latest, which waits for clusters.
      const isBack = this.#view!.resources[kind].has(name);
      if (!isBack) ledger.touched.delete(name);
      ledger.sent.delete(name);
    }
    if (isWhole) {
      const there = new Set(names);
      for (const name of ledger.sent.keys()) {
        if (!there.has(name)) ledger.sent.delete(name);
      }
    }
    // They go one by one, each after the answer to the one before.
    const queued = [...suspects.keys()].filter((name) => !names.includes(name));
    if (ledger.isAsked) { for (const name of queued) ledger.forced.add(name); }
    ledger.last = names;
    ledger.lastRemoved = names.length === 0 ? [] : body.removed;
    ledger.isAsked = false;
    ledger.anew.clear();
    ledger.openNonce = nonce;
    ledger.lastNonce = nonce;
    ledger.openSinceMs = this.nowMs;
  }

  #auditContent(kind: ResourceKind, name: string, version: string): void {
    const ledger = this.#ledgers[kind];
    if (ledger.refused.get(name) === version) {
      throw new Error(`Refused ${kind} ${name}=${version} is sent again`);
    }
    const now = this.#view!.resources[kind].get(name)?.version;
    if (LED.has(kind)) this.#auditLed(kind, name, version);
    if (now === version) return;
    // It waits for clusters, and what comes meanwhile waits behind it.
    const isLate = this.character.isLed && LED.has(kind) &&
      this.#recent.has(`${kind} ${name} ${version}`);
    if (isLate) return;
    if (now !== undefined && ledger.suspects.get(name) === now) {
      throw new Error(`Puts back ${kind} ${name}=${version}, there is ${now}`);
    }
    const isParked = ledger.everRefused.has(name);
    const isKept = now === undefined;
    if (!isParked && !isKept && !now!.endsWith("!")) {
      throw new Error(`Sends ${kind} ${name}=${version}, there is ${now}`);
    }
  }

  /** Nothing that is new to the client leads to a cluster that it lacks. */
  #auditLed(kind: ResourceKind, name: string, version: string): void {
    const { cluster } = this.#ledgers;
    const { cluster: mine } = this.model.kinds;
    const isNew = this.#ledgers[kind].sent.get(name) !== version;
    const isAll = this.character.isLed && this.model.kinds.cluster.isWildcard;
    if (!isAll || !isNew || this.#ledgers[kind].isAsked) return;
    const isThere = this.#view!.resources.cluster.has(name);
    if (!isThere || mine.has.has(name)) return;
    const { early } = this.#state.status;
    // It may have had to wait for other answers after that.
    const isExcused =
      this.#beforeMs <= (early?.atMs ?? -Infinity) + ANSWER_WAIT_MS ||
      cluster.everRefused.has(name) || mine.tainted.has(name) ||
      mine.blamed.size > 0;
    if (isExcused) return;
    throw new Error(`${kind} ${name} leads to a cluster that is not there`);
  }

  #auditWhole(ledger: Ledger, resources: readonly Resource[]): void {
    const whole = resources.map(({ name, version }) => `${name}=${version}`)
      .sort().join(" ");
    if (whole === ledger.whole && !ledger.isAsked) {
      throw new Error("A whole state is sent without a cause");
    }
    ledger.whole = whole;
  }

  #auditSome(kind: ResourceKind, names: readonly string[]): void {
    // Of what waits it may come and go, unseen, behind what is told.
    if (this.character.isLed && LED.has(kind)) return;
    const { touched, forced, isAsked } = this.#ledgers[kind];
    for (const name of names) {
      if (isAsked || touched.has(name) || forced.has(name)) continue;
      throw new Error(`${kind} ${name} is sent without a cause`);
    }
  }

  #resource(kind: ResourceKind, name: string, version: string): Resource {
    if (LED.has(kind)) this.#recent.add(`${kind} ${name} ${version}`);
    const key = `${kind} ${name} ${version}`;
    let resource = this.#resources.get(key);
    if (resource === undefined) {
      const isLed = this.character.isLed && LED.has(kind);
      resource = {
        ...resourceOf(kind, name, version),
        ...isLed ? { clusters: [name] } : {},
      };
      this.#resources.set(key, resource);
    }
    return resource;
  }
}
