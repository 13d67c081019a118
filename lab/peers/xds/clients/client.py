"""grpcio (C-core) over xds:///NAME: see README.md. client.py TARGET"""
import signal
import sys
import time

import grpc

WINDOW = 8
PAUSE_S = 0.005
TIMEOUT_S = 5

over = False


def end(*_):
    global over
    over = True


signal.signal(signal.SIGTERM, end)
channel = grpc.insecure_channel(sys.argv[1])
check = channel.unary_unary("/grpc.health.v1.Health/Check", lambda b: b, lambda b: b)
calls, failed, said = 0, 0, None
while not over:
    who = set()
    for _ in range(WINDOW):
        calls += 1
        try:
            _, call = check.with_call(b"", timeout=TIMEOUT_S)
            who.add(dict(call.initial_metadata())["backend"])
        except grpc.RpcError as error:
            failed += 1
            print("error", error.code().value[0], error.details(), flush=True)
        time.sleep(PAUSE_S)
    now = " ".join(sorted(who))
    if now != said:
        print("backends", now, flush=True)
    said = now
print("done", calls, failed, flush=True)
