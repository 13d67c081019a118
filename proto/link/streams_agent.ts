/**
 * A link of the streams carrier, as the agent serves it.
 *
 * Layer: link. Two methods for the router of one connection: control, which the
 * server calls first, and Proxy, which is refused before both hellos were sent.
 *
 * @module
 */

import { codeNamed } from "../peer/dial_error.ts";
import type {
  MethodHandler,
  ServerCall,
  ServerCallEvents,
} from "../grpc/call.ts";
import { MessageReader } from "../grpc/message_reader.ts";
import { GrpcError, StatusCode } from "../grpc/status.ts";
import type { Timer } from "../sync/clock.ts";
import {
  ControlError,
  decodeServerEvent,
  encodeAgentEvent,
  type ServerEvent,
} from "./control_messages.ts";
import {
  type AgentHello,
  type AnnouncedService,
  LINK_METHODS,
  type ServerHello,
} from "./link_messages.ts";
import {
  CONTROL_MESSAGE_BYTES_MAX,
  HELLO_DEADLINE_MS,
  LinkError,
  LinkRefusedError,
  versionProblem,
} from "./hello.ts";
import { proxyService, type ProxyServiceOptions } from "./proxy_service.ts";
import { PROXY_PATH } from "./capabilities.ts";

/** What an agent can send on an open link. */
export interface AgentControl {
  /**
   * Announces that this agent is going; running and further calls are served.
   */
  drain(): void;
  /** Sends what the node serves for others from now on. */
  announce(services: readonly AnnouncedService[]): void;
  /** Sends which authorities this node trusts from now on, by their ids. */
  trusts(authorities: readonly string[]): void;
  /** Ends the link: what still runs on it is lost. */
  end(reason: string): void;
}

/** See {@linkcode serveStreamsAgent}. */
interface StreamsAgentOptions extends ProxyServiceOptions {
  readonly hello: AgentHello;
  /**
   * The server has sent its hello, and does not know us yet. Returns why no
   * link to it is wanted, if none is. The server then sees a call that ended,
   * and never dials on it.
   */
  readonly decline?: (hello: ServerHello) => LinkError | undefined;
  /** The link stands: both hellos were sent and the server admitted us. */
  readonly onServerHello: (hello: ServerHello, control: AgentControl) => void;
  /** Everything a server sends after its hello; unknown events are left out. */
  readonly onEvent?: (
    event: Exclude<
      ServerEvent,
      { type: "hello" | "admission" | "refusal" | "unknown" }
    >,
  ) => void;
  /**
   * The link is over or never came to be; close the connection. Called once.
   * A refusal of the server is in the message word for word.
   */
  readonly onFailed: (error: LinkError) => void;
}

/** One link, as its connection sees it. */
interface StreamsAgent {
  /** For the router of the link's connection, and no other. */
  readonly methods: Readonly<Record<string, MethodHandler>>;
  /** The connection is gone; it may have been before the server called. */
  disconnected(reason: string): void;
}

/**
 * Serves one link, on a connection that has just been opened: the time for the
 * server's hello runs from now on.
 */
export function serveStreamsAgent(
  options: StreamsAgentOptions,
): StreamsAgent {
  const link = new StreamsAgentLink(options);
  const proxy = proxyService(options);
  const methods: Record<string, MethodHandler> = {
    [LINK_METHODS.control]: (call) => link.control(call),
    [PROXY_PATH](call) {
      if (!link.isOpen) {
        throw new GrpcError(
          StatusCode.FAILED_PRECONDITION,
          "Cannot take a connection: the hellos come first",
        );
      }
      return proxy(call);
    },
  };
  return { methods, disconnected: (reason) => link.disconnected(reason) };
}

class StreamsAgentLink implements ServerCallEvents {
  readonly #reader: MessageReader;
  readonly #deadline: Timer;
  #call: ServerCall | undefined;
  #state: "hello" | "admission" | "open" | "over" = "hello";
  #serverHello: ServerHello | undefined;

  constructor(private readonly options: StreamsAgentOptions) {
    this.#reader = new MessageReader({
      messageBytesMax: CONTROL_MESSAGE_BYTES_MAX,
      onMessage: (message) => this.#onMessage(message),
    });
    this.#deadline = options.timers.after(
      HELLO_DEADLINE_MS,
      () =>
        this.#fail(
          StatusCode.DEADLINE_EXCEEDED,
          this.#state === "hello"
            ? `the server said no hello within ${HELLO_DEADLINE_MS / 1000} s`
            : `the server did not admit this agent within ` +
              `${HELLO_DEADLINE_MS / 1000} s`,
        ),
    );
  }

  get isOpen(): boolean {
    return this.#state === "open";
  }

  control(call: ServerCall): ServerCallEvents {
    if (this.#call !== undefined || this.#state !== "hello") {
      throw new GrpcError(
        StatusCode.FAILED_PRECONDITION,
        "Cannot take a second control call on one link",
      );
    }
    this.#call = call;
    return this;
  }

  disconnected(reason: string): void {
    this.#fail(StatusCode.OK, reason);
  }

  onBody(chunk: Uint8Array): void {
    this.#call!.consumed(chunk.length);
    try {
      this.#reader.push(chunk);
    } catch (error) {
      if (error instanceof ControlError) {
        this.#fail(StatusCode.INVALID_ARGUMENT, error.message);
      } else if (error instanceof GrpcError) {
        this.#fail(error.code, error.message);
      } else throw error;
    }
  }

  onWritable(): void {}

  onHalfClose(): void {
    this.#fail(StatusCode.OK, "the server ended the link");
  }

  onCancel(reason: { readonly message: string }): void {
    this.#fail(StatusCode.OK, reason.message);
  }

  #onMessage(message: Uint8Array): void {
    if (this.#state === "over") return;
    const event = decodeServerEvent(message);
    if (event.type === "hello") return this.#onHello(event.hello);
    if (event.type === "unknown") return;
    if (event.type === "refusal") {
      // Sent on a link that stands, it ends just that link.
      const error = this.#state === "open"
        ? new LinkError(event.reason)
        : new LinkRefusedError(event.reason, codeNamed(event.code));
      return this.#fail(StatusCode.OK, event.reason, error);
    }
    if (this.#state === "hello") {
      return this.#fail(
        StatusCode.FAILED_PRECONDITION,
        "the server began without a hello",
      );
    }
    if (event.type === "admission") return this.#onAdmission();
    this.options.onEvent?.(event);
  }

  #onHello(hello: ServerHello): void {
    if (this.#state !== "hello") {
      return this.#fail(StatusCode.FAILED_PRECONDITION, "a second hello");
    }
    const problem = versionProblem(hello.version, "server");
    if (problem !== undefined) {
      return this.#fail(StatusCode.FAILED_PRECONDITION, problem);
    }
    const declined = this.options.decline?.(hello);
    if (declined !== undefined) {
      return this.#fail(StatusCode.OK, declined.message, declined);
    }
    this.#state = "admission";
    this.#serverHello = hello;
    this.#call!.sendMessage(
      encodeAgentEvent({ type: "hello", hello: this.options.hello }),
    );
  }

  #onAdmission(): void {
    if (this.#state !== "admission") {
      return this.#fail(StatusCode.FAILED_PRECONDITION, "a second admission");
    }
    this.#deadline.cancel();
    this.#state = "open";
    const say = (event: Parameters<typeof encodeAgentEvent>[0]) => {
      if (this.#state !== "open") return;
      this.#call!.sendMessage(encodeAgentEvent(event));
    };
    this.options.onServerHello(this.#serverHello!, {
      drain: () => say({ type: "drain" }),
      announce: (services) => say({ type: "services", services }),
      trusts: (authorities) => say({ type: "trust", authorities }),
      end: (reason) => this.#fail(StatusCode.OK, reason),
    });
  }

  #fail(
    code: StatusCode,
    message: string,
    error: LinkError = new LinkError(message),
  ): void {
    if (this.#state === "over") return;
    this.#state = "over";
    this.#deadline.cancel();
    this.#call?.finish({ code, message });
    this.options.onFailed(error);
  }
}
