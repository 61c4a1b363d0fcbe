package kv

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"
)

func TestOnlyALeaderWithAMajorityIsBelieved(t *testing.T) {
	heard := &jetstream.PeerInfo{Current: true, Active: 999 * time.Millisecond}
	silent := &jetstream.PeerInfo{Current: true, Active: unheard}
	offline := &jetstream.PeerInfo{Offline: true}
	for name, tc := range map[string]struct {
		leader   string
		replicas []*jetstream.PeerInfo
		want     error
	}{
		"alone":              {"n1", nil, nil},
		"no leader":          {"", []*jetstream.PeerInfo{heard, heard, heard}, errLeaderless},
		"all":                {"n1", []*jetstream.PeerInfo{heard, heard}, nil},
		"one of three lost":  {"n1", []*jetstream.PeerInfo{heard, silent}, nil},
		"two of three lost":  {"n1", []*jetstream.PeerInfo{silent, silent}, errMinority},
		"two of three gone":  {"n1", []*jetstream.PeerInfo{offline, silent}, errMinority},
		"two of five lost":   {"n1", []*jetstream.PeerInfo{silent, heard, heard, offline}, nil},
		"three of five lost": {"n1", []*jetstream.PeerInfo{silent, silent, heard, offline}, errMinority},
		"one of two lost":    {"n1", []*jetstream.PeerInfo{silent}, errMinority},
	} {
		t.Run(name, func(t *testing.T) {
			require.ErrorIs(t, authoritative(&jetstream.ClusterInfo{Leader: tc.leader, Replicas: tc.replicas}), tc.want)
		})
	}
	require.NoError(t, authoritative(nil), "a server without a cluster")
}
