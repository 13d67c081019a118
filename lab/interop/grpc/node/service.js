// The test service (../service.md) as grpc-js sees it: octets, no protobuf.
"use strict";

const identity = (octets) => octets;

function method(name, requestStream, responseStream) {
  return {
    path: `/interop.Echo/${name}`,
    requestStream,
    responseStream,
    requestSerialize: identity,
    requestDeserialize: identity,
    responseSerialize: identity,
    responseDeserialize: identity,
  };
}

exports.SERVICE = {
  Unary: method("Unary", false, false),
  Many: method("Many", false, true),
  Sum: method("Sum", true, false),
  Bidi: method("Bidi", true, true),
  Fail: method("Fail", true, true),
  Hang: method("Hang", true, true),
  Ended: method("Ended", false, false),
  Goaway: method("Goaway", false, false),
};
