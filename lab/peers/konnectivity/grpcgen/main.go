// The load generator over gRPC, the way kube-apiserver goes: Konnectivity's client library, and a gRPC connection of its own for each dial.
package main

import (
	"context"
	"flag"
	"io"
	"net"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"k8s.io/klog/v2"
	"sigs.k8s.io/apiserver-network-proxy/konnectivity-client/pkg/client"

	"tunnelbench/load"
)

const dialTimeout = 10 * time.Second

func main() {
	// The library complains of every connection that is aborted.
	klog.LogToStderr(false)
	klog.SetOutput(io.Discard)
	via := flag.String("via", "", "unix:path of the frontend")
	to := flag.String("to", "127.0.0.1:7000", "the target as the frontend is to name it")
	load.Main(func() load.Dialer { return dialer(strings.TrimPrefix(*via, "unix:"), *to) })
}

func dialer(path, to string) load.Dialer {
	dialSocket := func(ctx context.Context, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", path)
	}
	return func() (net.Conn, error) {
		ctx, cancel := context.WithTimeout(context.Background(), dialTimeout)
		defer cancel()
		// The tunnel lives as long as its connection, the context of the dial does not.
		life, end := context.WithCancel(context.Background())
		tunnel, err := client.CreateSingleUseGrpcTunnelWithContext(ctx, life, path,
			grpc.WithContextDialer(dialSocket), grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			end()
			return nil, err
		}
		conn, err := tunnel.DialContext(ctx, "tcp", to)
		if err != nil {
			end()
			return nil, err
		}
		return &connection{conn, end}, nil
	}
}

type connection struct {
	net.Conn
	end context.CancelFunc
}

// SetDeadline does nothing: the library's connections know none.
func (*connection) SetDeadline(time.Time) error { return nil }

// Abort ends a connection whose Write is stuck, for which the library's Close would wait.
func (c *connection) Abort() { c.end() }
