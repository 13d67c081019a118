/**
 * A frontend without agents, on a socket of this machine: each dial goes to the
 * first of several servers that can serve it.
 *
 * It is for callers that know one server only, as kube-apiserver does: its file
 * has one address for each network. It speaks both protocols of frontends, and
 * neither caller nor target sees it. To servers every such caller has the
 * gateway's identity.
 *
 * @module
 */

import { type BoundListener, listenUnix } from "../../net/listen/listeners.ts";
import type { Stream } from "../../net/stream/stream.ts";
import { relayDial } from "../../client/relayed_dial.ts";
import type { TunnelDialer } from "../../client/tunnel_dialer.ts";
import type { Tools } from "../../platform/program/tools.ts";
import type { DialAnswer } from "../../proto/link/dial_handler.ts";
import { type PendingDial, SILENT_OBSERVER } from "../../proto/link/link.ts";
import { PACKET_MESSAGE_BYTES_MAX } from "../../proto/packets/packet_reader.ts";
import { ReceiveBudget } from "../../proto/streams/receive_budget.ts";
import { join } from "../../proto/transfer/transfer.ts";
import type { CallerDial } from "../routing/dialer.ts";
import { FrontendPort } from "./frontend_port.ts";
import { frontendRouter } from "./grpc_frontend.ts";

/** Connections of callers: kube-apiserver makes one for each of its own. */
export const CALLERS_MAX = 16_384;

/** PING a silent caller after this long, as servers do. */
const KEEPALIVE_MS = 3_600_000;

/** What a gateway needs from outside. */
export interface GatewayOptions {
  /** Path of the socket; an old socket there is removed. */
  readonly path: string;
  /** Leads to the servers; stays open when the gateway is closed. */
  readonly dialer: TunnelDialer;
  /** Limit on each dial. */
  readonly timeoutMs: number;
}

/**
 * Opens the socket.
 *
 * @param tools The log has a line for each caller that was not served.
 * @throws {ListenError}
 */
export async function openGateway(
  options: GatewayOptions,
  tools: Tools,
): Promise<BoundListener> {
  const onProblem = (line: string) => tools.log.event(line);
  const port = gatewayPort(options, tools);
  let callers = 0;
  const accept = (stream: Stream) => {
    if (callers >= CALLERS_MAX) {
      onProblem(`${CALLERS_MAX} callers are connected: no more are taken`);
      return stream.close();
    }
    callers++;
    stream.onClosed = () => callers--;
    port.accept(stream);
  };
  return await listenUnix(options.path, { onConnection: accept, onProblem });
}

function gatewayPort(
  { path, dialer, timeoutMs }: GatewayOptions,
  { log, timers }: Tools,
): FrontendPort {
  const onProblem = (line: string) => log.event(`unix:${path}: ${line}`);
  const dial = (
    { caller: _, ...dial }: CallerDial,
    answer: DialAnswer,
  ): PendingDial =>
    relayDial(
      dialer,
      { ...dial, timeoutMs },
      answer,
      ({ message }) => onProblem(message),
    );
  return new FrontendPort({
    mode: "auto",
    timers,
    keepaliveMs: KEEPALIVE_MS,
    receiveBudget: new ReceiveBudget(),
    routerFor: (caller) =>
      frontendRouter(caller, {
        timers,
        dial,
        observer: SILENT_OBSERVER,
        messageBytesMax: PACKET_MESSAGE_BYTES_MAX,
        counted: () => {},
        publicMethods: {},
      }),
    connect: {
      timers,
      dial,
      join,
      refused: (status, message, isDial) => {
        if (!isDial) onProblem(`CONNECT refused with ${status}: ${message}`);
      },
    },
    turnedAway: (_, reason) => onProblem(reason),
  });
}
