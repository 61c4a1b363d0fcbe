package natstest

import (
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"
)

// Mesh is a JetStream cluster whose every connection, of clients and between
// servers, passes a gate, so that a server can die without a word or be cut off
// from the others. Not for bubbles.
type Mesh struct {
	t     testing.TB
	nodes []*member
}

// member is one place in the mesh, whichever server runs there.
type member struct {
	*server.Server
	opts    *server.Options
	clients *gate
	routes  []*gate // to every member before it: of two servers the later one dials
}

// NewMesh starts n servers and waits until all are current. They are shut down
// when t ends.
func NewMesh(t testing.TB, n int) *Mesh {
	t.Helper()
	m := &Mesh{t: t}
	ports := freePorts(t, 2*n)
	for i := range n {
		m.nodes = append(m.nodes, m.place(i, ports[:n], ports[n:]))
	}
	for i := range n {
		m.launch(i)
	}
	m.Settle()
	return m
}

func (m *Mesh) place(i int, clients, routes []int) *member {
	at := &member{clients: newGate(m.t, loopback(clients[i]))}
	var urls []string
	for j := range i {
		at.routes = append(at.routes, newGate(m.t, loopback(routes[j])))
		urls = append(urls, "nats://"+at.routes[j].addr())
	}
	at.opts = &server.Options{
		ServerName: fmt.Sprintf("n%d", i), Host: "127.0.0.1", Port: clients[i], ClientAdvertise: at.clients.addr(),
		JetStream: true, StoreDir: m.t.TempDir(), NoSigs: true, NoLog: true,
		LameDuckDuration: 500 * time.Millisecond, LameDuckGracePeriod: 300 * time.Millisecond,
		Cluster: server.ClusterOpts{
			Name: "mesh", Host: "127.0.0.1", Port: routes[i], PoolSize: -1,
			Advertise: "127.0.0.1:1", // nobody is there: servers meet through their gates only
		},
		Routes: server.RoutesFromStr(strings.Join(urls, ",")),
	}
	m.t.Cleanup(func() {
		if at.Server != nil {
			stop(at.Server)
		}
	})
	return at
}

func loopback(port int) string { return net.JoinHostPort("127.0.0.1", fmt.Sprint(port)) }

func (m *Mesh) launch(i int) {
	m.t.Helper()
	at := m.nodes[i]
	srv, err := server.NewServer(at.opts.Clone())
	require.NoError(m.t, err)
	at.Server = srv
	srv.Start()
	require.True(m.t, srv.ReadyForConnections(readyWithin), "n%d did not start", i)
}

// Settle waits until one server leads and all are current.
func (m *Mesh) Settle() {
	m.t.Helper()
	var all Nodes
	for _, at := range m.nodes {
		all = append(all, at.Server)
	}
	require.Eventually(m.t, all.settled, 20*time.Second, 10*time.Millisecond, "the cluster found no leader")
}

// Dial connects to server i, and to the others in order when that is gone.
func (m *Mesh) Dial(i int, opts ...nats.Option) *nats.Conn {
	m.t.Helper()
	var urls []string
	for k := range m.nodes {
		urls = append(urls, "nats://"+m.nodes[(i+k)%len(m.nodes)].clients.addr())
	}
	return dial(m.t, strings.Join(urls, ","), append([]nats.Option{nats.DontRandomize()}, opts...))
}

// On is the server that a connection hangs on, or -1.
func (m *Mesh) On(nc *nats.Conn) int {
	return m.index(nc.ConnectedServerName())
}

func (m *Mesh) index(name string) int {
	return slices.IndexFunc(m.nodes, func(at *member) bool { return at.opts.ServerName == name })
}

// Leader is the server that leads a stream, or -1.
func (m *Mesh) Leader(stream string) int {
	return slices.IndexFunc(m.nodes, func(at *member) bool {
		return at.JetStreamIsStreamLeader(server.DEFAULT_GLOBAL_ACCOUNT, stream)
	})
}

// Lead makes server i the leader of a stream. nc must reach it.
func (m *Mesh) Lead(nc *nats.Conn, stream string, i int) {
	m.t.Helper()
	order := fmt.Appendf(nil, `{"placement":{"preferred":%q}}`, m.nodes[i].opts.ServerName)
	require.Eventually(m.t, func() bool {
		if m.Leader(stream) != i {
			_, _ = nc.Request(jetstream.DefaultAPIPrefix+"STREAM.LEADER.STEPDOWN."+stream, order, time.Second) // asked again until it is so
		}
		return m.Leader(stream) == i
	}, 20*time.Second, 50*time.Millisecond, "n%d does not lead %s", i, stream)
}

// Kill ends server i as kill -9 does: its sockets are reset and nobody hears
// another word of it.
func (m *Mesh) Kill(i int) {
	m.Isolate(i)
	m.nodes[i].clients.shut()
	stop(m.nodes[i].Server)
}

// LameDuck has server i leave in order, as before maintenance, and waits until
// it is gone.
func (m *Mesh) LameDuck(i int) {
	m.nodes[i].LameDuckShutdown()
	m.nodes[i].WaitForShutdown()
}

// Restart starts server i again, in its place and over its files. One that
// still runs is shut down first.
func (m *Mesh) Restart(i int) {
	m.t.Helper()
	stop(m.nodes[i].Server)
	m.Heal(i)
	m.nodes[i].clients.reopen()
	m.launch(i)
}

// Isolate cuts server i off from the others. Its clients stay with it.
func (m *Mesh) Isolate(i int) { m.each(i, (*gate).shut) }

// Heal lets server i meet the others again.
func (m *Mesh) Heal(i int) { m.each(i, (*gate).reopen) }

func (m *Mesh) each(i int, do func(*gate)) {
	for _, g := range m.nodes[i].routes {
		do(g)
	}
	for _, later := range m.nodes[i+1:] {
		do(later.routes[i])
	}
}
