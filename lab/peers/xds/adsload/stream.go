package main

import (
	"context"
	"fmt"
	"net"
	"slices"
	"sync/atomic"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/proto"
)

// received counts the octets of all streams.
var received atomic.Int64

// A stream subscribes to all clusters and, by name, to the load assignments of those, and accepts everything, as Envoy does. The
// names are repeated with every ACK over SotW.
type stream struct {
	id      int
	isDelta bool
	stall   <-chan struct{} // reads nothing after this is closed

	call           grpc.ClientStream
	pursuit        pursuit
	names          []string
	version, nonce string       // of load assignments
	responses      atomic.Int64 // of load assignments
}

func dial(address string) (*grpc.ClientConn, error) {
	return grpc.NewClient("passthrough:///"+address, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, a string) (net.Conn, error) {
			c, err := (&net.Dialer{}).DialContext(ctx, "tcp", a)
			return meter{c}, err
		}),
		grpc.WithDefaultCallOptions(grpc.ForceCodec(octets{}), grpc.MaxCallRecvMsgSize(256<<20)),
		grpc.WithReadBufferSize(16<<10), grpc.WithWriteBufferSize(16<<10))
}

type meter struct{ net.Conn }

func (m meter) Read(b []byte) (int, error) {
	n, err := m.Conn.Read(b)
	received.Add(int64(n))
	return n, err
}

// run gives the reason why it ended; it never ends well.
func (s *stream) run(c *grpc.ClientConn) error {
	method := "StreamAggregatedResources"
	if s.isDelta {
		method = "DeltaAggregatedResources"
	}
	var err error
	if s.call, err = c.NewStream(context.Background(), &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, service+method); err != nil {
		return err
	}
	if err = s.begin(); err != nil {
		return err
	}
	for {
		select {
		case <-s.stall:
			<-s.call.Context().Done()
			return nil
		default:
		}
		var message []byte
		if err = s.call.RecvMsg(&message); err != nil {
			return err
		}
		if s.isDelta {
			err = s.take(readDelta(message))
		} else {
			err = s.take(readSotw(message))
		}
		if err != nil {
			return err
		}
	}
}

func (s *stream) begin() error {
	node := &corev3.Node{Id: fmt.Sprintf("load-%d", s.id), Cluster: "load", UserAgentName: "envoy"}
	if s.isDelta {
		return s.call.SendMsg(&discovery.DeltaDiscoveryRequest{TypeUrl: clusters, Node: node})
	}
	return s.call.SendMsg(&discovery.DiscoveryRequest{TypeUrl: clusters, Node: node})
}

func (s *stream) take(r response) error {
	if r.kind == clusters {
		return s.takeClusters(r)
	}
	s.responses.Add(1)
	for _, each := range r.resources {
		s.pursuit.see(each)
	}
	s.version, s.nonce = r.version, r.nonce
	return s.call.SendMsg(s.acknowledge(assignments, r, s.names))
}

func (s *stream) takeClusters(r response) error {
	if err := s.call.SendMsg(s.acknowledge(clusters, r, nil)); err != nil {
		return err
	}
	var added []string
	for _, each := range r.resources {
		if !slices.Contains(s.names, each.name) {
			added = append(added, each.name)
		}
	}
	if len(added) == 0 {
		return nil
	}
	s.names = append(s.names, added...)
	slices.Sort(s.names)
	if s.isDelta {
		return s.call.SendMsg(&discovery.DeltaDiscoveryRequest{TypeUrl: assignments, ResourceNamesSubscribe: added})
	}
	return s.call.SendMsg(&discovery.DiscoveryRequest{TypeUrl: assignments, ResourceNames: s.names, VersionInfo: s.version, ResponseNonce: s.nonce})
}

func (s *stream) acknowledge(kind string, r response, names []string) proto.Message {
	if s.isDelta {
		return &discovery.DeltaDiscoveryRequest{TypeUrl: kind, ResponseNonce: r.nonce}
	}
	return &discovery.DiscoveryRequest{TypeUrl: kind, ResourceNames: names, VersionInfo: r.version, ResponseNonce: r.nonce}
}
