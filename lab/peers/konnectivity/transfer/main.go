// Moves octets through a tunnel the way kube-apiserver does, and checks them: with Konnectivity's Go client library, or by CONNECT,
// where nothing may stand behind the 200 in one read.
//
//	konnectivity-transfer -mode grpc | http-connect  -uds PATH | -addr HOST:PORT -ca F -cert F -key F  -to HOST:PORT -octets N -n CONNECTIONS
//
// Each connection sends a length (u64) and that many octets to an echoing target, reads as many back at the same time and
// compares SHA-256 sums. With -banner it reads that from a target that speaks first, and no more. Prints one line "N passed, N failed" and each error; exits non-zero when one failed.
package main

import (
	"bufio"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"flag"
	"fmt"
	"io"
	"math/rand"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"sigs.k8s.io/apiserver-network-proxy/konnectivity-client/pkg/client"
)

var (
	mode   = flag.String("mode", "grpc", "grpc or http-connect")
	uds    = flag.String("uds", "", "unix socket of the frontend")
	addr   = flag.String("addr", "", "host:port of the frontend (mTLS)")
	ca     = flag.String("ca", "", "CA certificate file")
	cert   = flag.String("cert", "", "client certificate file")
	key    = flag.String("key", "", "client key file")
	to     = flag.String("to", "", "host:port of the echoing target")
	octets = flag.Int64("octets", 1<<16, "octets per connection, each way")
	n      = flag.Int("n", 1, "connections at the same time")
	limit  = flag.Duration("timeout", time.Minute, "for each connection")
	banner = flag.String("banner", "", "what the target says first; nothing else is moved then")
)

func main() {
	flag.Parse()
	var wg sync.WaitGroup
	errs := make([]error, *n)
	for i := range errs {
		wg.Add(1)
		go func() {
			defer wg.Done()
			errs[i] = transfer(int64(i))
		}()
	}
	wg.Wait()
	failed := 0
	for i, err := range errs {
		if err != nil {
			failed++
			fmt.Printf("connection %d: %v\n", i, err)
		}
	}
	fmt.Printf("%d passed, %d failed\n", *n-failed, failed)
	if failed > 0 {
		os.Exit(1)
	}
}

func transfer(seed int64) error {
	ctx, cancel := context.WithTimeout(context.Background(), *limit)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- transferWithin(ctx, seed) }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done(): // The library's connections know no deadlines.
		return fmt.Errorf("not done after %v", *limit)
	}
}

func transferWithin(ctx context.Context, seed int64) error {
	dial := dialGrpc
	if *mode == "http-connect" {
		dial = dialConnect
	}
	conn, err := dial(ctx)
	if err != nil {
		return fmt.Errorf("dial: %w", err)
	}
	defer conn.Close()
	if *banner != "" {
		return expectBanner(conn)
	}
	sent := make(chan [sha256.Size]byte, 1)
	sendFailed := make(chan error, 1)
	go func() {
		sum, err := send(conn, seed)
		if err != nil {
			sendFailed <- err
			return
		}
		sent <- sum
	}()
	hash := sha256.New()
	got, err := io.CopyN(hash, conn, *octets)
	if err != nil {
		return fmt.Errorf("read ended after %d of %d octets: %w", got, *octets, err)
	}
	select {
	case sum := <-sent:
		if [sha256.Size]byte(hash.Sum(nil)) != sum {
			return fmt.Errorf("what came back is not what was sent")
		}
		return nil
	case err := <-sendFailed:
		return fmt.Errorf("write: %w", err)
	}
}

func expectBanner(conn net.Conn) error {
	got := make([]byte, len(*banner))
	if n, err := io.ReadFull(conn, got); err != nil {
		return fmt.Errorf("the banner ended after %d octets: %w", n, err)
	}
	if string(got) != *banner {
		return fmt.Errorf("the banner is %q", got)
	}
	return nil
}

func send(conn net.Conn, seed int64) (sum [sha256.Size]byte, err error) {
	if err = binary.Write(conn, binary.BigEndian, uint64(*octets)); err != nil {
		return sum, err
	}
	hash := sha256.New()
	source := io.TeeReader(io.LimitReader(rand.New(rand.NewSource(seed)), *octets), hash)
	if _, err = io.CopyBuffer(struct{ io.Writer }{conn}, source, make([]byte, 1<<15)); err != nil {
		return sum, err
	}
	return [sha256.Size]byte(hash.Sum(nil)), nil
}

// dialGrpc takes the socket path for the gRPC address, as kube-apiserver does.
func dialGrpc(ctx context.Context) (net.Conn, error) {
	address, credential := *uds, insecure.NewCredentials()
	options := []grpc.DialOption{grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", *uds)
	})}
	if *uds == "" {
		config, err := tlsConfig()
		if err != nil {
			return nil, err
		}
		address, credential, options = *addr, credentials.NewTLS(config), nil
	}
	options = append(options, grpc.WithTransportCredentials(credential))
	tunnel, err := client.CreateSingleUseGrpcTunnelWithContext(ctx, ctx, address, options...)
	if err != nil {
		return nil, err
	}
	return tunnel.DialContext(ctx, "tcp", *to)
}

func dialConnect(ctx context.Context) (net.Conn, error) {
	conn, err := dialFrontend(ctx)
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(conn, "CONNECT %s HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", *to)
	reader := bufio.NewReader(conn)
	response, err := http.ReadResponse(reader, nil)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the answer is %s", response.Status)
	}
	if n := reader.Buffered(); n > 0 {
		return nil, fmt.Errorf("%d octets stand behind the 200", n)
	}
	return conn, nil
}

func dialFrontend(ctx context.Context) (net.Conn, error) {
	if *uds != "" {
		return new(net.Dialer).DialContext(ctx, "unix", *uds)
	}
	config, err := tlsConfig()
	if err != nil {
		return nil, err
	}
	return (&tls.Dialer{Config: config}).DialContext(ctx, "tcp", *addr)
}

func tlsConfig() (*tls.Config, error) {
	pem, err := os.ReadFile(*ca)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(pem)
	pair, err := tls.LoadX509KeyPair(*cert, *key)
	if err != nil {
		return nil, err
	}
	return &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{pair}}, nil
}
