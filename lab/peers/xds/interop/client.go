package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/encoding/gzip"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

const caseTimeout = 20 * time.Second

type caller struct{ conn *grpc.ClientConn }

type testCase struct {
	name string
	run  func(caller, context.Context) error
}

// The last one ends the connection.
var cases = []testCase{
	{"unary: nothing, little and 4 MiB come back", caller.unarySizes},
	{"unary: 200 calls at once", caller.unaryMany},
	{"unary: gzip is read", caller.unaryGzip},
	{"metadata: text and octets come back in head and trailers", caller.metadata},
	{"status: every code with a message beyond ASCII", caller.statuses},
	{"status: an unknown method is UNIMPLEMENTED", caller.unknownMethod},
	{"server streaming: 1000 messages", caller.serverStream},
	{"server streaming: three of 4 MiB", caller.serverStreamLarge},
	{"client streaming: 1000 messages", caller.clientStream},
	{"bidi: ping-pong, then half-close", caller.bidi},
	{"bidi: 4 MiB each way", caller.bidiLarge},
	{"bidi: an error while the client is sending", caller.earlyError},
	{"cancel: the server hears of it", caller.cancel},
	{"deadline: both sides keep it", caller.deadline},
	{"limit: 9 MiB are RESOURCE_EXHAUSTED", caller.tooLarge},
	{"health: Check, Watch", caller.health},
	{"goaway: what runs is finished", caller.goaway},
}

func runClient(address string) bool {
	var dials atomic.Int32
	conn, err := grpc.NewClient("passthrough:///"+address,
		grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
			dials.Add(1)
			return (&net.Dialer{}).DialContext(ctx, "tcp", address)
		}),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.ForceCodec(rawCodec{}), grpc.MaxCallRecvMsgSize(16<<20)))
	if err != nil {
		fatal(err)
	}
	defer conn.Close()
	ok := true
	for _, test := range cases {
		ctx, cancel := context.WithTimeout(context.Background(), caseTimeout)
		before := dials.Load()
		err := test.run(caller{conn}, ctx)
		// The client would dial again and hide that the server hung up on it.
		if err == nil && before > 0 && dials.Load() > before {
			err = errors.New("the server ended the connection")
		}
		if err != nil {
			fmt.Printf("FAIL %s: %v\n", test.name, err)
			ok = false
		} else {
			fmt.Printf("PASS %s\n", test.name)
		}
		cancel()
	}
	return ok
}

func (c caller) invoke(ctx context.Context, method string, request []byte, opts ...grpc.CallOption) ([]byte, error) {
	var answer []byte
	err := c.conn.Invoke(ctx, "/interop.Echo/"+method, &request, &answer, opts...)
	return answer, err
}

func (c caller) stream(ctx context.Context, method string) (grpc.ClientStream, error) {
	desc := &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}
	return c.conn.NewStream(ctx, desc, "/interop.Echo/"+method)
}

func pattern(octets int) []byte {
	message := make([]byte, octets)
	for i := range message {
		message[i] = byte(i * 7)
	}
	return message
}

func (c caller) unarySizes(ctx context.Context) error {
	for _, octets := range []int{0, 1, 16384, 65536, 4 << 20} {
		answer, err := c.invoke(ctx, "Unary", pattern(octets))
		if err != nil {
			return err
		}
		if !bytes.Equal(answer, pattern(octets)) {
			return fmt.Errorf("%d octets came back as other %d", octets, len(answer))
		}
	}
	return nil
}

func (c caller) unaryMany(ctx context.Context) error {
	var group sync.WaitGroup
	failures := make(chan error, 200)
	for i := range 200 {
		group.Go(func() {
			wanted := fmt.Sprint("call ", i)
			answer, err := c.invoke(ctx, "Unary", []byte(wanted))
			if err == nil && string(answer) != wanted {
				err = fmt.Errorf("%q came back as %q", wanted, answer)
			}
			if err != nil {
				failures <- err
			}
		})
	}
	group.Wait()
	close(failures)
	return <-failures
}

func (c caller) unaryGzip(ctx context.Context) error {
	answer, err := c.invoke(ctx, "Unary", pattern(100_000), grpc.UseCompressor(gzip.Name))
	if err == nil && !bytes.Equal(answer, pattern(100_000)) {
		err = errors.New("other octets came back")
	}
	return err
}

func (c caller) metadata(ctx context.Context) error {
	ctx = metadata.AppendToOutgoingContext(ctx,
		"x-text", "a b", "x-text", "second", "x-octets-bin", "\x00\xff\x10", "x-octets-bin", "")
	var head, trailer metadata.MD
	if _, err := c.invoke(ctx, "Unary", nil, grpc.Header(&head), grpc.Trailer(&trailer)); err != nil {
		return err
	}
	for _, got := range []metadata.MD{head, trailer} {
		if fmt.Sprintf("%q", got["x-text"]) != `["a b" "second"]` {
			return fmt.Errorf("x-text is %q", got["x-text"])
		}
		if fmt.Sprintf("%q", got["x-octets-bin"]) != `["\x00\xff\x10" ""]` {
			return fmt.Errorf("x-octets-bin is %q", got["x-octets-bin"])
		}
	}
	return nil
}

func (c caller) statuses(ctx context.Context) error {
	for code := codes.Canceled; code <= codes.Unauthenticated; code++ {
		text := fmt.Sprintf("größer als 100%% ☃😀\n(%d)", code)
		_, err := c.invoke(ctx, "Fail", []byte(fmt.Sprintf("%d %s", code, text)))
		if got := status.Convert(err); got.Code() != code || got.Message() != text {
			return fmt.Errorf("%v came back as %v %q", code, got.Code(), got.Message())
		}
	}
	return nil
}

func (c caller) unknownMethod(ctx context.Context) error {
	_, err := c.invoke(ctx, "Nothing", nil)
	if got := status.Convert(err); got.Code() != codes.Unimplemented || !strings.Contains(got.Message(), "Nothing") {
		return fmt.Errorf("got %v", err)
	}
	return nil
}

func (c caller) receiveMany(ctx context.Context, count, octets int) error {
	stream, err := c.stream(ctx, "Many")
	if err != nil {
		return err
	}
	request := []byte(fmt.Sprintf("%d %d", count, octets))
	if err := errors.Join(stream.SendMsg(&request), stream.CloseSend()); err != nil {
		return err
	}
	for i := range count {
		var message []byte
		if err := stream.RecvMsg(&message); err != nil {
			return fmt.Errorf("message %d: %w", i, err)
		}
		if len(message) != octets || message[octets-1] != byte(i) {
			return fmt.Errorf("message %d is wrong", i)
		}
	}
	var message []byte
	if err := stream.RecvMsg(&message); err != io.EOF {
		return fmt.Errorf("wanted the end, got %v", err)
	}
	return nil
}

func (c caller) serverStream(ctx context.Context) error      { return c.receiveMany(ctx, 1000, 5000) }
func (c caller) serverStreamLarge(ctx context.Context) error { return c.receiveMany(ctx, 3, 4<<20) }

func (c caller) clientStream(ctx context.Context) error {
	stream, err := c.stream(ctx, "Sum")
	if err != nil {
		return err
	}
	message := pattern(5000)
	for range 1000 {
		if err := stream.SendMsg(&message); err != nil {
			return err
		}
	}
	if err := stream.CloseSend(); err != nil {
		return err
	}
	var answer []byte
	if err := stream.RecvMsg(&answer); err != nil {
		return err
	}
	if string(answer) != "1000 5000000" {
		return fmt.Errorf("the sum is %q", answer)
	}
	return nil
}

func pingPong(stream grpc.ClientStream, octets int) error {
	message := pattern(octets)
	if err := stream.SendMsg(&message); err != nil {
		return err
	}
	var answer []byte
	if err := stream.RecvMsg(&answer); err != nil {
		return err
	}
	if !bytes.Equal(answer, message) {
		return errors.New("other octets came back")
	}
	return nil
}

func finish(stream grpc.ClientStream) error {
	if err := stream.CloseSend(); err != nil {
		return err
	}
	var message []byte
	if err := stream.RecvMsg(&message); err != io.EOF {
		return fmt.Errorf("wanted the end, got %v", err)
	}
	return nil
}

func (c caller) bidi(ctx context.Context) error {
	stream, err := c.stream(ctx, "Bidi")
	if err != nil {
		return err
	}
	for i := range 200 {
		if err := pingPong(stream, i*10); err != nil {
			return err
		}
	}
	return finish(stream)
}

func (c caller) bidiLarge(ctx context.Context) error {
	stream, err := c.stream(ctx, "Bidi")
	if err != nil {
		return err
	}
	if err := errors.Join(pingPong(stream, 4<<20), pingPong(stream, 4<<20)); err != nil {
		return err
	}
	return finish(stream)
}

func (c caller) earlyError(ctx context.Context) error {
	stream, err := c.stream(ctx, "Fail")
	if err != nil {
		return err
	}
	message := []byte("9 stop")
	for err == nil {
		err = stream.SendMsg(&message)
	}
	var answer []byte
	if err := stream.RecvMsg(&answer); status.Code(err) != codes.FailedPrecondition {
		return fmt.Errorf("got %v", err)
	}
	// Thousands of small messages were under way, in front of this call on the
	// same connection; it has to outlive them.
	_, err = c.invoke(ctx, "Unary", nil)
	return err
}

func (c caller) cancel(ctx context.Context) error {
	hanging, stop := context.WithCancel(ctx)
	defer stop()
	stream, err := c.stream(hanging, "Hang")
	if err != nil {
		return err
	}
	message := []byte("x")
	if err := stream.SendMsg(&message); err != nil {
		return err
	}
	stop()
	if err := stream.RecvMsg(&message); status.Code(err) != codes.Canceled {
		return fmt.Errorf("got %v", err)
	}
	_, err = c.invoke(ctx, "Ended", nil)
	return err
}

func (c caller) deadline(ctx context.Context) error {
	short, stop := context.WithTimeout(ctx, 50*time.Millisecond)
	defer stop()
	if _, err := c.invoke(short, "Hang", nil); status.Code(err) != codes.DeadlineExceeded {
		return fmt.Errorf("got %v", err)
	}
	_, err := c.invoke(ctx, "Ended", nil)
	return err
}

func (c caller) tooLarge(ctx context.Context) error {
	_, err := c.invoke(ctx, "Unary", pattern(9<<20))
	if got := status.Convert(err); got.Code() != codes.ResourceExhausted || !strings.Contains(got.Message(), "8388608") {
		return fmt.Errorf("got %v", err)
	}
	return nil
}

func (c caller) health(ctx context.Context) error {
	client := healthpb.NewHealthClient(c.conn)
	answer, err := client.Check(ctx, &healthpb.HealthCheckRequest{})
	if err != nil || answer.Status != healthpb.HealthCheckResponse_SERVING {
		return fmt.Errorf("Check gave %v, %v", answer, err)
	}
	if _, err := client.Check(ctx, &healthpb.HealthCheckRequest{Service: "none"}); status.Code(err) != codes.NotFound {
		return fmt.Errorf("Check of an unknown service gave %v", err)
	}
	watching, stop := context.WithCancel(ctx)
	defer stop()
	watch, err := client.Watch(watching, &healthpb.HealthCheckRequest{Service: "none"})
	if err != nil {
		return err
	}
	answer, err = watch.Recv()
	if err != nil || answer.Status != healthpb.HealthCheckResponse_SERVICE_UNKNOWN {
		return fmt.Errorf("Watch gave %v, %v", answer, err)
	}
	return nil
}

func (c caller) goaway(ctx context.Context) error {
	stream, err := c.stream(ctx, "Bidi")
	if err != nil {
		return err
	}
	if err := pingPong(stream, 10); err != nil {
		return err
	}
	if _, err := c.invoke(ctx, "Goaway", nil); err != nil {
		return err
	}
	for range 20 {
		if err := pingPong(stream, 50_000); err != nil {
			return err
		}
	}
	return finish(stream)
}
