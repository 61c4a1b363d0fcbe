package natstest

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"
)

// Nodes are the servers of one JetStream cluster on loopback ports.
type Nodes []*server.Server

// Cluster starts n servers and waits until they have a leader and every one of
// them is current. They are shut down when t ends. Not for bubbles.
func Cluster(t testing.TB, n int) Nodes {
	t.Helper()
	ports := freePorts(t, n)
	routes := make([]string, n)
	for i, port := range ports {
		routes[i] = fmt.Sprintf("nats://127.0.0.1:%d", port)
	}
	nodes := make(Nodes, n)
	for i, port := range ports {
		nodes[i] = startNode(t, i, port, strings.Join(routes, ","))
	}
	for _, node := range nodes {
		require.True(t, node.ReadyForConnections(readyWithin), "%s did not start", node.Name())
	}
	require.Eventually(t, nodes.settled, 20*time.Second, 20*time.Millisecond, "the cluster found no leader")
	return nodes
}

// Dial connects to all nodes and keeps reconnecting fast; the connection is
// closed when t ends.
func (n Nodes) Dial(t testing.TB, opts ...nats.Option) *nats.Conn {
	t.Helper()
	urls := make([]string, len(n))
	for i, node := range n {
		urls[i] = node.ClientURL()
	}
	return dial(t, strings.Join(urls, ","), opts)
}

// settled reports whether one node leads and knows all peers, and all are current.
func (n Nodes) settled() bool {
	led := false
	for _, node := range n {
		if !node.JetStreamIsCurrent() {
			return false
		}
		led = led || node.JetStreamIsLeader() && len(node.JetStreamClusterPeers()) == len(n)
	}
	return led
}

func startNode(t testing.TB, i, port int, routes string) *server.Server {
	t.Helper()
	srv, err := server.NewServer(&server.Options{
		ServerName: fmt.Sprintf("n%d", i+1),
		Host:       "127.0.0.1", Port: server.RANDOM_PORT,
		JetStream: true, StoreDir: t.TempDir(),
		Cluster: server.ClusterOpts{Name: "test", Host: "127.0.0.1", Port: port},
		Routes:  server.RoutesFromStr(routes),
		NoSigs:  true, NoLog: true,
	})
	require.NoError(t, err)
	srv.Start()
	t.Cleanup(func() { stop(srv) })
	return srv
}

// Ports that the system does not hand out by itself on Linux, to listeners
// without a port of their own or to outgoing connections, which would take a
// port between the moment it is found free and the start of its server.
const firstPort, lastPort = 15000, 32000

// freePorts holds n ports open together before it frees them, so that no two
// of them are the same.
func freePorts(t testing.TB, n int) []int {
	t.Helper()
	var ports []int
	for tries := 0; len(ports) < n; tries++ {
		require.Less(t, tries, 1000, "no free ports")
		port := firstPort + rand.IntN(lastPort-firstPort)
		l, err := net.Listen("tcp", loopback(port))
		if err != nil {
			continue
		}
		defer func() { _ = l.Close() }()
		ports = append(ports, port)
	}
	return ports
}
