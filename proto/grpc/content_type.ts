/**
 * Which content types are gRPC (PROTOCOL-HTTP2, "Content-Type").
 *
 * @module
 */

/** What we send. The sub-type after `+` is the peer's business, so none. */
export const CONTENT_TYPE = "application/grpc";

/**
 * Whether `contentType` is gRPC: `application/grpc`, alone or with `+proto` or
 * parameters behind it. `application/grpc-web` is another protocol.
 */
export function isGrpcContentType(contentType: string | undefined): boolean {
  return contentType !== undefined &&
    /^application\/grpc(?:$|[+;\s])/i.test(contentType);
}
