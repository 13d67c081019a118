package main

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	_ "google.golang.org/grpc/encoding/gzip"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

const messageMax = 8 << 20

// echo is the test service; see lab/interop/grpc/service.md.
type echo struct {
	server *grpc.Server
	mu     sync.Mutex
	ended  *sync.Cond
	count  int
}

func serve() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fatal(err)
	}
	e := &echo{}
	e.ended = sync.NewCond(&e.mu)
	e.server = grpc.NewServer(
		grpc.ForceServerCodec(rawCodec{}),
		grpc.MaxRecvMsgSize(messageMax),
		grpc.UnknownServiceHandler(e.handle),
	)
	healthpb.RegisterHealthServer(e.server, health.NewServer())
	fmt.Printf("listening %d\n", listener.Addr().(*net.TCPAddr).Port)
	if err := e.server.Serve(listener); err != nil {
		fatal(err)
	}
}

func (e *echo) handle(_ any, stream grpc.ServerStream) error {
	path, _ := grpc.MethodFromServerStream(stream)
	switch path {
	case "/interop.Echo/Unary":
		return e.unary(stream)
	case "/interop.Echo/Many":
		return e.many(stream)
	case "/interop.Echo/Sum":
		return e.sum(stream)
	case "/interop.Echo/Bidi":
		return e.bidi(stream)
	case "/interop.Echo/Fail":
		return e.fail(stream)
	case "/interop.Echo/Hang":
		return e.hang(stream)
	case "/interop.Echo/Ended":
		return e.awaitEnded(stream)
	case "/interop.Echo/Goaway":
		go e.server.GracefulStop()
		return e.unary(stream)
	}
	return status.Errorf(codes.Unimplemented, "unknown method %s", path)
}

func (e *echo) unary(stream grpc.ServerStream) error {
	given, _ := metadata.FromIncomingContext(stream.Context())
	back := metadata.MD{}
	for name, values := range given {
		if strings.HasPrefix(name, "x-") {
			back[name] = values
		}
	}
	if err := stream.SetHeader(back); err != nil {
		return err
	}
	stream.SetTrailer(back)
	var message []byte
	if err := stream.RecvMsg(&message); err != nil {
		return err
	}
	return stream.SendMsg(&message)
}

func (e *echo) many(stream grpc.ServerStream) error {
	var message []byte
	if err := stream.RecvMsg(&message); err != nil {
		return err
	}
	var count, octets int
	if _, err := fmt.Sscan(string(message), &count, &octets); err != nil {
		return status.Error(codes.InvalidArgument, err.Error())
	}
	for i := range count {
		// gRPC sends later what it is given now, so each message is fresh.
		answer := bytes.Repeat([]byte{byte(i)}, octets)
		if err := stream.SendMsg(&answer); err != nil {
			return err
		}
	}
	return nil
}

func (e *echo) sum(stream grpc.ServerStream) error {
	count, octets := 0, 0
	for {
		var message []byte
		err := stream.RecvMsg(&message)
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
		count++
		octets += len(message)
	}
	answer := []byte(fmt.Sprintf("%d %d", count, octets))
	return stream.SendMsg(&answer)
}

func (e *echo) bidi(stream grpc.ServerStream) error {
	for {
		var message []byte
		err := stream.RecvMsg(&message)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if err := stream.SendMsg(&message); err != nil {
			return err
		}
	}
}

func (e *echo) fail(stream grpc.ServerStream) error {
	var message []byte
	if err := stream.RecvMsg(&message); err != nil {
		return err
	}
	number, text, _ := strings.Cut(string(message), " ")
	var code uint32
	if _, err := fmt.Sscan(number, &code); err != nil {
		return status.Error(codes.InvalidArgument, err.Error())
	}
	return status.Error(codes.Code(code), text)
}

func (e *echo) hang(stream grpc.ServerStream) error {
	<-stream.Context().Done()
	e.mu.Lock()
	e.count++
	e.ended.Broadcast()
	e.mu.Unlock()
	return stream.Context().Err()
}

func (e *echo) awaitEnded(stream grpc.ServerStream) error {
	var message []byte
	if err := stream.RecvMsg(&message); err != nil {
		return err
	}
	e.mu.Lock()
	for e.count == 0 {
		e.ended.Wait()
	}
	e.count--
	e.mu.Unlock()
	return stream.SendMsg(&message)
}
