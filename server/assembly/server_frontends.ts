/**
 * The callers' side of a server: the port of its frontends and, where it is
 * wanted, the one for callers of kubelets.
 *
 * @module
 */

import type { BoundListener } from "../../net/listen/listeners.ts";
import {
  type CredentialFiles,
  pairFiles,
} from "../../net/tls/trust/credentials.ts";
import type { MethodHandler } from "../../proto/grpc/call.ts";
import { join } from "../../proto/transfer/transfer.ts";
import { listenFrontend } from "../frontends/frontend_listener.ts";
import { FrontendPort } from "../frontends/frontend_port.ts";
import { frontendRouter } from "../frontends/grpc_frontend.ts";
import type { KubeletPort } from "../kubelet/kubelet_port.ts";
import type { ServerCore } from "./server_core.ts";

/** The callers' side of one server. */
export class ServerFrontends {
  readonly #port: FrontendPort;
  #listener: BoundListener | undefined;
  #kubelet: KubeletPort | undefined;

  /** @param publicMethods Of gRPC; they answer every client. */
  constructor(
    private readonly core: ServerCore,
    publicMethods: Readonly<Record<string, MethodHandler>>,
  ) {
    this.#port = this.#createPort(publicMethods);
  }

  /**
   * Opens the port of the frontends.
   *
   * @returns Where it listens.
   * @throws {CredentialsError | ListenError}
   */
  async listen(): Promise<string> {
    const { options, limiter, program: { files, log } } = this.core;
    this.#listener = await listenFrontend({
      listen: options.frontend.listen,
      tls: options.tls,
      limiter: limiter.limiter,
      load: (pair) => files.credentials("frontend", pair),
      accept: (socket, admitted) => this.#port.accept(socket, admitted),
      refused: (reason) => this.core.callerRefused(reason),
      onProblem: (line, code = "TUN513") => log.warn(line, { code }),
    });
    return this.#listener.address;
  }

  /**
   * Opens the port for callers of kubelets, if there is to be one.
   *
   * @param agentFiles The agent port's certificate and trust.
   * @returns Where it listens.
   * @throws {CredentialsError | ListenError}
   */
  async listenKubelet(
    agentFiles: CredentialFiles,
  ): Promise<string | undefined> {
    const core = this.core;
    const { kubelet, tls } = core.options;
    const { files, log, timers, metrics } = core.program;
    if (kubelet === undefined) return undefined;
    // Loaded when wanted: most servers have no such port.
    const { KubeletPort } = await import("../kubelet/kubelet_port.ts");
    this.#kubelet = new KubeletPort(kubelet, {
      ...{ log, timers, metrics },
      tls,
      limiter: core.limiter.limiter,
      dial: (order, answer) => core.dialer.dial(order, answer),
      isServed: (host) => core.serves(host),
      callers: files.credentials(
        "kubelet-port",
        {
          ...agentFiles,
          ...pairFiles(kubelet.keyPair),
          ca: kubelet.callerCaFile,
        },
      ),
      kubelets: files.credentials("kubelets", {
        ...pairFiles(kubelet.clientKeyPair),
        ca: kubelet.kubeletCaFile,
      }),
      turnedAway: () => core.metrics.ours.refusedCallers.add(),
    });
    return this.#kubelet.address;
  }

  /**
   * Sends callers of HTTP/2 a GOAWAY: they make new connections for later
   * calls. Callers that connect here all the same are served.
   */
  drain(reason: string): void {
    this.#port.shutdown(reason);
  }

  /**
   * Does the same, and closes the port for new callers.
   *
   * @returns Whether callers of HTTP/2 are connected.
   */
  refuse(reason: string): boolean {
    this.#listener?.close();
    this.#listener = undefined;
    this.#port.finish(reason);
    return this.areCalled;
  }

  /** Callers of HTTP/2 are connected. */
  get areCalled(): boolean {
    return this.#port.connections > 0;
  }

  /** Accepts nothing any more, and ends what runs. */
  stop(reason: string): void {
    this.#listener?.close();
    this.#port.finish(reason);
    this.#kubelet?.stop(reason);
  }

  #createPort(
    publicMethods: Readonly<Record<string, MethodHandler>>,
  ): FrontendPort {
    const { options, metrics, program, limiter, receiveBudget } = this.core;
    const { frontend } = options;
    const { grpcConnections, httpConnections } = metrics.upstream;
    const { log } = program;
    const tools = this.core.callerTools("client");
    const { dial, timers } = tools;
    return new FrontendPort({
      mode: frontend.mode,
      timers,
      keepaliveMs: frontend.keepaliveMs,
      receiveBudget,
      routerFor: (caller) =>
        frontendRouter(caller, {
          ...tools,
          counted: (change) => grpcConnections.with("Proxy").add(change),
          publicMethods,
        }),
      connect: {
        timers,
        grantsEarly: frontend.connectEarly200,
        dial,
        join,
        refused: (status, message, isDial) => {
          // The dialer logs what became of a dial.
          if (isDial) return;
          log.event(`CONNECT refused with ${status}: ${message}`, {}, message);
        },
      },
      turnedAway: (from, reason) =>
        this.core.callerRefused(`${from}: ${reason}`),
      ended: (end) => limiter.ended("frontends", end),
      counted: (change) => httpConnections.add(change),
    });
  }
}
