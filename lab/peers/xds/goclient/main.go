// grpc-go over xds:///NAME: calls the health service until it is told to end, and says who answers. What it prints is described
// in clients/README.md and is the same for the clients in other languages.
//
//	xds-goclient TARGET        with GRPC_XDS_BOOTSTRAP or GRPC_XDS_BOOTSTRAP_CONFIG
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	_ "google.golang.org/grpc/xds"
)

const (
	window  = 8
	pause   = 5 * time.Millisecond
	timeout = 5 * time.Second
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	c, err := grpc.NewClient(os.Args[1], grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		log.Fatal(err)
	}
	health, said := healthpb.NewHealthClient(c), ""
	calls, failed := 0, 0
	for ctx.Err() == nil {
		var who []string
		for range window {
			var header metadata.MD
			limited, cancel := context.WithTimeout(context.Background(), timeout)
			_, err := health.Check(limited, &healthpb.HealthCheckRequest{}, grpc.Header(&header))
			cancel()
			calls++
			if err != nil {
				failed++
				s := status.Convert(err)
				fmt.Println("error", int(s.Code()), s.Message())
			} else if b := header.Get("backend"); !slices.Contains(who, b[0]) {
				who = append(who, b[0])
			}
			time.Sleep(pause)
		}
		slices.Sort(who)
		if now := strings.Join(who, " "); now != said || calls == window {
			fmt.Println("backends", now)
			said = now
		}
	}
	fmt.Println("done", calls, failed)
}
