package natstest

import (
	"net"
	"net/url"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/stretchr/testify/require"
)

// Regions starts a supercluster of one server a region, joined by gateways whose
// messages take so long each way, and waits until all know each other. They keep
// nothing: there is no JetStream. Not for bubbles.
func Regions(t testing.TB, delay time.Duration, names ...string) []*server.Server {
	t.Helper()
	ports := freePorts(t, len(names))
	var remotes []*server.RemoteGatewayOpts
	for i, name := range names {
		remotes = append(remotes, &server.RemoteGatewayOpts{Name: name, URLs: []*url.URL{{Scheme: "nats", Host: slowDoor(t, loopback(ports[i]), delay)}}})
	}
	var servers []*server.Server
	for i, name := range names {
		servers = append(servers, start(t, &server.Options{
			ServerName: name, Host: "127.0.0.1", Port: server.RANDOM_PORT, Cluster: server.ClusterOpts{Name: name},
			Gateway: server.GatewayOpts{Name: name, Host: "127.0.0.1", Port: ports[i], Gateways: remotes,
				Advertise: "127.0.0.1:1"}, // nobody is there: servers meet through their slow doors only
		}))
	}
	require.Eventually(t, func() bool {
		for _, srv := range servers {
			if srv.NumOutboundGateways() < len(names)-1 {
				return false
			}
		}
		return true
	}, 10*time.Second, 10*time.Millisecond, "the regions do not know each other")
	return servers
}

// slowDoor passes TCP connections on to an address, and takes its time.
func slowDoor(t testing.TB, to string, delay time.Duration) (address string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	l := &line{delay: delay}
	t.Cleanup(func() {
		_ = listener.Close()
		l.passing.Wait()
	})
	l.passing.Go(func() {
		for {
			in, err := listener.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", to)
			if err != nil {
				_ = in.Close()
				continue
			}
			l.pass(out, in)
			l.pass(in, out)
		}
	})
	return listener.Addr().String()
}
