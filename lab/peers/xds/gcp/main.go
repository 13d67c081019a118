// The reference: an ADS server on go-control-plane, SotW and Delta, plaintext, that serves a catalog file and follows it.
//
//	xds-gcp -catalog FILE [-listen HOST:PORT] [-cache snapshot|linear] [-quiet]
//
// Prints "listening PORT", and every request and response as a line of JSON unless it is quiet. A catalog that cannot be read
// changes nothing. Nodes whose user agent is "envoy" get listeners on addresses, all others api_listeners.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"net"
	"os"
	"os/signal"
	"sync"
	"syscall"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	server "github.com/envoyproxy/go-control-plane/pkg/server/v3"
	"google.golang.org/grpc"
)

var (
	listen = flag.String("listen", "127.0.0.1:0", "where it serves")
	path   = flag.String("catalog", "", "file of services, JSON")
	which  = flag.String("cache", "snapshot", "snapshot, or linear, which sends what changed only")
	quiet  = flag.Bool("quiet", false, "say nothing of requests and responses")
)

func main() {
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	served, apply := snapshotCache()
	if *which == "linear" {
		served, apply = linearCache()
	}
	var lock sync.Mutex
	load := func() error {
		lock.Lock()
		defer lock.Unlock()
		c, err := readCatalog(*path)
		if err == nil {
			err = apply(c)
		}
		return err
	}
	// Followed before it is read, so that no change falls between.
	err := follow(*path, func() {
		if err := load(); err != nil {
			log.Print(err)
		}
	})
	if err == nil {
		err = load()
	}
	if err != nil {
		log.Fatal(err)
	}
	callbacks := server.CallbackFuncs{}
	if !*quiet {
		callbacks = journal()
	}
	g := grpc.NewServer(grpc.MaxConcurrentStreams(1 << 20))
	discovery.RegisterAggregatedDiscoveryServiceServer(g, server.NewServer(ctx, served, callbacks))
	l, err := net.Listen("tcp", *listen)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("listening", l.Addr().(*net.TCPAddr).Port)
	go func() {
		<-ctx.Done()
		g.Stop()
	}()
	if err := g.Serve(l); err != nil {
		log.Fatal(err)
	}
}
